# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Problem set 9: Training and inference
#
# A railway station wants an information desk that answers in any language. At night a model learns; by day
# it answers. The same weights, two very different bills.
#
# **About 5 hours** (estimated), after chapter 9, without a GPU. Write in the place of `raise NotImplementedError()` and
# delete that line; `help(grade)` says how points are counted. Unless a task says otherwise, sizes are whole
# numbers from 1 on. Inputs must stay as they are: a changed one costs the row.

# %%
import math

import numpy as np
from warplab import specs
from warplab.check import grade, predict, puzzle, when_written

# %% [markdown]
# ## Five guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# A float16 weight is 1.0. Subtract 0.0002, a thousand times. What is it now?

# %%
puzzle("ps09/steps", ...)

# %% [markdown]
# A token of an answer only goes forward through the network. How many times as much arithmetic does one in training
# take?

# %%
puzzle("ps09/flop", ...)

# %% [markdown]
# 7 billion weights of 2 bytes, one request, no cache, and an H100 that reads 3.35 TB/s. At most how many
# tokens a second?

# %%
puzzle("ps09/reader", ...)

# %% [markdown]
# It computes 989 TFLOP/s, 2 FLOP for each weight and request. How many requests until that takes as long as
# reading the weights?

# %%
puzzle("ps09/company", ...)

# %% [markdown]
# Of every four 16-bit numbers two are kept, and for each of them its place. What share of the bits is left?

# %%
puzzle("ps09/half", ...)

# %% [markdown]
# ## 1. One step of the night
#
# The gradient comes in 16 bits, multiplied by a `scale` so that small numbers do not vanish.
#
# 1. If any number of the gradient is infinite or NaN, the scale was too large. Skip the step: nothing changes
#    but the scale, which is halved, and the count of good steps, which goes back to 0.
# 2. Otherwise, in **float32**: divide by the scale, add to the momentum (0.9 of the old one), move the
#    *master* weights by `lr` times the momentum. One more good step; after the fourth in a row the scale is
#    doubled and the count goes to 0.
# 3. The 16-bit weights for the next forward pass are made from the master.
#
# Why the master? Near 1.0 the numbers of float16 are 0.001 apart, and a step of 0.0001 is rounded away.


# %% solution="train_step"
def train_step(master, moment, gradient, scale, good, lr):
    """Return (master, moment, weights, scale, good) after one step. About 12 lines.

    master, moment  float32 (n,)
    gradient        float16 (n,), multiplied by scale
    scale, lr       numbers
    good            good steps since the scale was changed, a whole number

    weights  float16 (n,), made from the new master
    `np.isfinite(a)` and `a.astype(np.float32)` will be of use.
    """
    ### BEGIN SOLUTION
    if np.isfinite(gradient).all():
        moment = np.float32(0.9) * moment + gradient.astype(np.float32) / np.float32(scale)
        master = master - np.float32(lr) * moment
        good += 1
        if good == 4:
            scale, good = 2 * scale, 0
    else:
        scale, good = scale / 2, 0
    return master, moment, master.astype(np.float16), scale, good
    # The order matters: first out of 16 bits, then the division; a scale of 65,536 is not even a float16. Dividing by a power of two
    # is exact but for the smallest numbers, which is why the mistake is so hard to see (the check contains one of them). Usual slips:
    # the momentum decays in a skipped step, counting goes on after it, `-=` on an array that was given, the master made from the
    # 16-bit weights. The step itself is GradScaler's, with its 2,000 steps between two doublings cut to four.
    ### END SOLUTION


# %% grade="ps09/train_step"
grade("ps09/train_step", train_step)

# %% [markdown]
# A hundred steps in the same direction, each too small for float16 alone:

# %%
with when_written():
    master, moment = np.ones(1, np.float32), np.zeros(1, np.float32)
    alone, scale, good = np.ones(1, np.float16), 1024.0, 0
    for _ in range(100):
        with np.errstate(over="ignore"):
            gradient = np.float32([1e-3 * scale]).astype(np.float16)
        master, moment, weights, scale, good = train_step(master, moment, gradient, scale, good, 1e-2)
        alone -= np.float16(1e-2) * moment.astype(np.float16)
    print(f"with a master {weights[0]}, in float16 alone {alone[0]}")

# %% [markdown]
# ## 2. How many nights?
#
# A token makes every weight multiply and add once forward, and twice on the way back: $6ND$, with N weights
# in the blocks ($12\,\text{width}^2$ a layer) and D tokens. Attention adds scores and weighted values, in
# which no weight takes part: $2 \cdot 2 \cdot \text{context} \cdot \text{width}$ a layer and token forward
# (counting all pairs), and twice that backward.


# %% solution="six_nd"
def six_nd(layers, width, context, tokens, gpus, peak, share):
    """Return (rule, full, days). About 4 lines.

    rule  6 N D, FLOP
    full  with attention, FLOP
    days  of `full` on `gpus` cards at `share` of their `peak` (FLOP/s)
    """
    ### BEGIN SOLUTION
    rule = 6 * 12 * layers * width**2 * tokens
    full = rule + 12 * layers * width * context * tokens
    return rule, full, full / (gpus * peak * share) / 86_400
    # Six is two for the multiply-add times three for forward and backward; attention's twelve is four times three. Their ratio is
    # context / (6 width), a line worth asking for. Usual slips: 2 N D, attention without its way back, hours, the peak taken as it
    # stands. Kernels that leave out the masked half of the pairs do half of the attention; the formula counts it all, as papers do.
    ### END SOLUTION


# %% grade="ps09/six_nd"
grade("ps09/six_nd", six_nd)

# %% [markdown]
# The station's model on 20 billion tokens, with eight H100s at 40 % of their dense BF16 peak:

# %%
with when_written():
    peak = specs.get("h100-sxm")["peak_bf16"].si
    rule, full, days = six_nd(24, 2048, 2048, 20e9, 8, peak, 0.4)
    print(f"{rule:.2e} FLOP by the rule, {full / rule - 1:.0%} more with attention: {days:.1f} days")

# %% [markdown]
# ## 3. Remember what you have read
#
# Tokens come one by one. The new one's query looks at the keys and values of all tokens so far, so those are
# worth keeping:
#
# ```python
# q, k, v = x[t] @ wq, x[t] @ wk, x[t] @ wv      # k and v go into the cache
# weights = softmax(q @ keys.T / sqrt(d))        # over tokens 0 ... t
# out[t] = weights @ values
# ```
#
# Some tokens may have been read already: their keys and values are in the cache that you get, and nobody has
# the tokens themselves any more. Read the new ones, and return the cache with them behind the rest.


# %% solution="kv_decode"
def kv_decode(x, wq, wk, wv, keys, values):
    """Return (out, keys, values). About 10 lines.

    x             float32 (new, d), the new tokens, 1 or more
    wq, wk, wv    float32 (d, d)
    keys, values  float32 (known, d), of the tokens before them, 0 or more

    out           float32 (new, d); on the way np.sqrt may make doubles of it, and .astype(np.float32) brings it back
    keys, values  float32 (known + new, d), the cache afterwards
    """
    ### BEGIN SOLUTION
    known, out = len(keys), np.empty_like(x)
    keys, values = np.concatenate([keys, x @ wk]), np.concatenate([values, x @ wv])
    for t in range(len(x)):
        seen = known + t + 1
        scores = keys[:seen] @ (x[t] @ wq) / np.float32(math.sqrt(x.shape[1]))
        weights = np.exp(scores - scores.max())
        out[t] = weights / weights.sum() @ values[:seen]
    return out, keys, values
    # The cache turns n (n + 1) products into 2n; attention itself stays quadratic. Usual slips: np.sqrt(d), a double that makes `out`
    # float64 (the reason names the cure), a token that does not see itself or sees those behind it, no maximum taken off (exp overflows
    # in float32 above 88), a mask that counts from the first new token.
    ### END SOLUTION


# %% grade="ps09/kv_decode"
grade("ps09/kv_decode", kv_decode)

# %% [markdown]
# ## 4. What no code can beat
#
# For each token all weights are read from memory, and the request's cache. More requests share the weights, until the
# arithmetic, 2 FLOP a weight and request, takes as long as the reading (leave the caches out of this). And the memory
# must hold it all.


# %% solution="decode_bound"
def decode_bound(parameters, number, cache, card):
    """Return (one, crossing, fit). About 5 lines.

    parameters  of `number` bytes each
    cache       bytes of a request's cache
    card        dictionary with bandwidth (bytes/s), peak (FLOP/s) and memory (bytes)

    one       tokens a second of a single request, at most
    crossing  requests at which reading the weights and computing take equally long
    fit       requests whose caches fit beside the weights, a whole number, 0 if the weights do not fit
    """
    ### BEGIN SOLUTION
    weights = parameters * number
    one = card["bandwidth"] / (weights + cache)
    crossing = card["peak"] * weights / (2 * parameters * card["bandwidth"])
    return one, crossing, max(0, int((card["memory"] - weights) // cache))
    # In the crossing the parameters cancel: it is the ridge of the card times bytes a weight over two, so 4-bit weights need a
    # quarter of the requests of 16-bit ones. Usual slips: one FLOP a weight, the cache left out of the first bound, `//` of floats,
    # which is a float.
    ### END SOLUTION


# %% grade="ps09/decode_bound"
grade("ps09/decode_bound", decode_bound)

# %%
with when_written():
    for name in "rtx-4090", "h100-sxm":
        gpu = specs.get(name)
        card = {
            "bandwidth": gpu["memory_bandwidth"].si,
            "peak": gpu["peak_bf16"].si,
            "memory": gpu["memory_capacity"].si,
        }
        for number in 2, 0.5:
            one, crossing, fit = decode_bound(7e9, number, 200e6, card)
            print(
                f"{name}, {number} bytes a weight: {one:4.0f} tokens/s, arithmetic short from {crossing:4.0f} requests, {fit} fit"
            )

# %% [markdown]
# ## 5. Two of four
#
# Since Ampere, Tensor Cores can skip zeros in a fixed pattern: of every four neighbours in a row, two. The
# simplest way keeps the two of largest magnitude. Stored are the values that stay, and for each its place
# among the four.
#
# ```text
#   w        0.1  -0.9   0.4   0.2 |  0.5   0.5  -0.5   0.1
#   pruned   0    -0.9   0.4   0   |  0.5   0.5   0     0        a draw is won by the earlier place
#   values  -0.9   0.4   0.5   0.5
#   places   1     2     0     1
# ```


# %% solution="prune_24"
def prune_24(w):
    """Return (pruned, values, places). About 7 lines.

    w       float32 (rows, n), n a multiple of 4

    pruned  float32 (rows, n)
    values  float32 (rows, n / 2)
    places  whole numbers 0 to 3, (rows, n / 2), rising within a group
    """
    ### BEGIN SOLUTION
    groups = w.reshape(len(w), -1, 4)
    places = np.sort(np.argsort(-np.abs(groups), axis=2, kind="stable")[:, :, :2], axis=2)
    values = np.take_along_axis(groups, places, axis=2)
    pruned = np.zeros_like(groups)
    np.put_along_axis(pruned, places, values, axis=2)
    return pruned.reshape(w.shape), values.reshape(len(w), -1), places.reshape(len(w), -1)
    # Stable, because draws are to be won by the earlier place; sorted again, because the hardware wants rising places. Usual slips:
    # no abs, groups down the columns, two of four taken from the whole row, values in the order of size. Two loops over rows and
    # groups are right as well, and fast enough here.
    ### END SOLUTION


# %% grade="ps09/prune_24"
grade("ps09/prune_24", prune_24)

# %% [markdown]
# ## 6. The queue at the desk *
#
# A batch is cheaper than as many single answers: it takes `fixed + each * size` seconds. So the server waits
# for company. It starts as soon as it is free **and** either `most` travellers are there or the oldest has
# waited for `patience` seconds. It takes those who have come by then, oldest first, at most `most`.
#
# With arrivals at 0.0, 0.1 and 0.5, most 2, patience 0.3, fixed 0.2, each 0.1, the second fills the batch at
# 0.1, and both are done at 0.1 + 0.2 + 2 * 0.1 = 0.5. The third waits until 0.8 and is done at 1.1.


# %% solution="batch_server"
def batch_server(arrivals, most, patience, fixed, each):
    """Return the time at which each request is done, as a list. About 12 lines.

    arrivals  rising times, seconds
    most      requests in a batch, 1 or more
    patience  seconds that the oldest waits for company, 0 or more
    fixed, each  a batch of b takes fixed + each * b seconds
    """
    ### BEGIN SOLUTION
    free, first, done = 0.0, 0, []
    while first < len(arrivals):
        start = arrivals[first] + patience
        if first + most <= len(arrivals):
            start = min(start, arrivals[first + most - 1])
        start = max(start, free)
        batch = sum(t <= start for t in arrivals[first : first + most])
        free = start + fixed + each * batch
        done += [free] * batch
        first += batch
    return done
    # One line decides: start is the earlier of "full" and "out of patience", but not before the server is free. Whoever has come by
    # then goes along, so the batch is counted after the start is known. Usual slips: patience counted from when the server became
    # free, waiting the patience out in a full batch, waiting for ever for a batch that nobody fills (the last requests), `fixed` paid
    # for each request.
    ### END SOLUTION


# %% grade="ps09/batch_server"
grade("ps09/batch_server", batch_server)

# %% [markdown]
# A rush of 400 travellers, with made-up arrivals. How many leave the desk each second, and how long does the
# unluckiest of twenty wait?


# %%
def rush(gap, most, patience=0.05):
    """(travellers who leave each second, seconds within which 95 % have their answer)"""
    arrivals = np.cumsum(np.random.default_rng(9).exponential(1, 400))
    arrivals = list(arrivals * 400 * gap / arrivals[-1])
    done = np.array(batch_server(arrivals, most, patience, 0.05, 0.01))
    return 400 / done[-1], np.quantile(done - arrivals, 0.95)


with when_written():
    for gap in 0.2, 0.04, 0.013:
        for most in 1, 8, 64:
            leave, within = rush(gap, most)
            print(
                f"{1 / gap:>4.0f} come a second, at most {most:>2}: {leave:5.1f} leave, 95 % within {within:5.2f} s"
            )

# %% [markdown]
# ## 7. Predict and explain
#
# 1. **Predict**, for 25 travellers a second and batches of at most 8 in the table above: how many leave each
#    second, and within how long have 95 % their answer, with a `patience` of 0 and of 0.5 seconds? Put it in
#    the place of the `...`; the numbers come when all four are said, from your `batch_server`.
# 2. **Explain** what you see.
# 3. "Many requests at once reduce the latency." Where in the table is that true, where false, and what would
#    be a better sentence?
#
# About 150 words.

# %%
predict(
    {("leave", 0): ..., ("leave", 0.5): ..., ("within", 0): ..., ("within", 0.5): ...},
    lambda what: dict(zip(("leave", "within"), rush(0.04, 8, what[1])))[what[0]],
    found="simulated",
)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** At 25 a second a server that takes one at a time needs 0.06 s each, 16.7 a second: it falls behind, and the wait
# grows as long as the rush lasts. In batches it keeps up, since the 0.05 s are shared. Patience hardly changes the throughput then: as
# many leave as come. With 0 it starts at once with smaller batches, and waits are shortest; with 0.5 s nearly everybody waits for company
# that is not needed, until eight are there or the time is up, so the wait grows by up to half a second. At a light load patience is a pure loss.
#
# More requests raise the latency of a given server, always: they wait for each other. What lowers it, at the same load, is to serve
# them in batches, because otherwise the queue would grow. Better: batching raises the throughput, so that the server can take
# more load before waits explode; each answer takes longer than it would alone.
#
# **Marking.** 1 point: patience costs waiting at a light load. 2 points: throughput is limited by fixed + each a request, and batches
# share `fixed`. 1 point: latency grows with load. 1 point: a correct sentence that separates throughput from latency.
# ### END SOLUTION
