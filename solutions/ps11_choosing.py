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
# # Problem set 11: Choosing and paying
#
# A museum wants its visitors to ask questions of the paintings. There is a model that can answer, a budget
# that cannot be discussed, and you.
#
# **About 3 hours** (estimated), after chapter 11, without a GPU. Write in the place of `raise NotImplementedError()` and
# delete that line; `help(grade)` says how points are counted. Unless a task says otherwise, sizes are whole
# numbers from 1 on. Inputs must stay as they are: a changed one costs the row.

# %%
import json
import math

from warplab import specs
from warplab.check import grade, predict, puzzle, when_written
from warplab.models.miniature import flat, fresh, one_step

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# A card decodes for one request and waits for memory. A second request joins. What share of its old price does
# a token cost? (No caches.)

# %%
puzzle("ps11/second", ...)

# %% [markdown]
# Spot machines turn out to live four times as long. By what factor does the best interval between two saves
# grow?

# %%
puzzle("ps11/longer", ...)

# %% [markdown]
# "yes" or "no": is `json.loads(json.dumps(x)) == x` for every finite float x?

# %%
puzzle("ps11/text", ...)

# %% [markdown]
# An autoscaler changes nothing within 10 % of its target. Target 10, 3 replicas, a load of 31: how many replicas
# next?

# %%
puzzle("ps11/three", ...)

# %% [markdown]
# ## 1. Which card?
#
# Serving reads all weights for every token and is short of bandwidth; training in large batches is short of
# arithmetic. Divide what is short by the price, and take the best of the cards that are large enough.
#
# A card is a dictionary with `memory` (bytes), `bandwidth` (bytes/s), `bf16` (FLOP/s, dense) and `price`
# (dollars an hour).


# %% solution="pick_gpu"
def pick_gpu(cards, need, stage):
    """Return the index of the best card, -1 if none is large enough. About 6 lines.

    cards  list of dictionaries
    need   bytes that must fit
    stage  "inference" (most bandwidth for each dollar) or "training" (most bf16 for each dollar)

    If two are equally good, take the cheaper one.
    """
    ### BEGIN SOLUTION
    scarce = "bandwidth" if stage == "inference" else "bf16"
    fitting = [n for n in range(len(cards)) if cards[n]["memory"] >= need]
    return max(fitting, key=lambda n: (cards[n][scarce] / cards[n]["price"], -cards[n]["price"]), default=-1)
    # Memory is a condition, the rest a quotient; who adds them up to a mark buys the wrong card. The pair as a key settles draws.
    # Usual slips: the fastest card, the cheapest card, `>` for `>=`, no answer where nothing fits. What the rule leaves out: several
    # small cards for one large.
    ### END SOLUTION


# %% grade="ps11/pick_gpu"
grade("ps11/pick_gpu", pick_gpu)

# %% [markdown]
# Three real cards, with **made-up** prices. Does the answer change with today's?

# %%
with when_written():
    made_up = {"t4": 0.5, "rtx-4090": 0.7, "h100-sxm": 4.0}
    cards = []
    for name, price in made_up.items():
        gpu = specs.get(name)
        bf16 = gpu["peak_bf16"].si if "peak_bf16" in gpu else gpu["peak_fp16"].si
        cards.append(
            {
                "memory": gpu["memory_capacity"].si,
                "bandwidth": gpu["memory_bandwidth"].si,
                "bf16": bf16,
                "price": price,
            }
        )
    for need in 14e9, 20e9, 60e9:
        print(
            f"{need / 1e9:.0f} GB: to serve {list(made_up)[pick_gpu(cards, need, 'inference')]}, to train {list(made_up)[pick_gpu(cards, need, 'training')]}"
        )

# %% [markdown]
# ## 2. What does an answer cost?
#
# A server decodes for a batch of requests. One step makes a token for each of them, and takes as long as the
# longer of two things:
#
# - reading: all weights once, and each request's cache, at `share` times the bandwidth;
# - arithmetic: two FLOP a parameter for each request, at `share` times the peak.
#
# For 7 billion parameters of 2 bytes and one request without a cache, 1 TB/s and a share of 0.5, that is 14 GB
# / 0.5 TB/s = 28 ms, 36 tokens a second. At 3.60 dollars an hour a million tokens cost 28 dollars.


# %% solution="cost_per_token"
def cost_per_token(card, parameters, number, cache, batch, share):
    """Return (tokens a second, dollars for a million tokens). About 5 lines.

    card        dictionary with bandwidth, bf16 and price (dollars an hour)
    parameters  of the model, of `number` bytes each
    cache       bytes of one request's cache
    batch       requests served together
    share       of bandwidth and peak that is reached, from 0 to 1
    """
    ### BEGIN SOLUTION
    reading = (parameters * number + batch * cache) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = batch / max(reading, computing)
    return tokens, card["price"] / 3600 / tokens * 1e6
    # Reading and arithmetic go on at the same time, so the longer one counts, not their sum. The weights stand in the step once and
    # the caches `batch` times: that is the whole economy of batching. Usual slips: weights read for each request, tokens of one
    # request, share applied to one of the two roofs, 3,600.
    ### END SOLUTION


# %% grade="ps11/cost_per_token"
grade("ps11/cost_per_token", cost_per_token)

# %%
with when_written():
    for batch in 1, 8, 64, 512:
        tokens, dollars = cost_per_token(cards[2], 7e9, 2, 100e6, batch, 0.6)
        print(
            f"batch of {batch:>3}: {tokens:>8,.0f} tokens/s, {dollars:6.2f} dollars a million, {tokens / batch:5.1f} tokens/s for each request"
        )

# %% [markdown]
# ## 3. When to save
#
# A cheap spot machine is taken away every `between` hours, on average. What was computed since the last save
# is then lost: half an interval, on average. For an interval T the lost share of the time is
#
# $$\frac{\text{save}}{T} + \frac{T}{2\,\text{between}} + \frac{\text{restart}}{\text{between}},$$
#
# least at $T = \sqrt{2\cdot\text{save}\cdot\text{between}}$. More than 1 means that everything is lost, and
# no money buys an hour of work.


# %% solution="spot_interval"
def spot_interval(save, between, restart, price):
    """Return (interval, lost, cost). About 4 lines. All times in hours.

    save     time to save once
    between  average time between two interruptions
    restart  time to get a machine back and go on
    price    dollars an hour

    interval  the best one
    lost      share of the time that is lost with it, at most 1
    cost      dollars for an hour of work that stays; math.inf if none does
    """
    ### BEGIN SOLUTION
    interval = math.sqrt(2 * save * between)
    lost = min(1.0, save / interval + interval / (2 * between) + restart / between)
    return interval, lost, price / (1 - lost) if lost < 1 else math.inf
    # At the best interval both parts are equal, so lost is interval / between + restart / between. Usual slips: a whole interval lost
    # for each interruption, no restart, price * (1 + lost), which is right only for small losses, and a negative cost when more than
    # all is lost.
    ### END SOLUTION


# %% grade="ps11/spot_interval"
grade("ps11/spot_interval", spot_interval)

# %% [markdown]
# ## 4. Go on as if nothing had happened
#
# A training run in miniature: `one_step(state)` returns the next state and the loss. The state is a
# dictionary: the step, the weights `w`, the optimiser's momentum `m`, and the state `rng` of the random
# numbers that choose the data.

# %%
state = fresh()
for _ in range(3):
    state, loss = one_step(state)
    print(f"step {state['step']}: loss {loss:.6f}")
print(json.dumps(state))

# %% [markdown]
# That last line is a save. When the machine dies, a list of such texts is left. If it died *while* saving,
# one is torn: it ends in the middle, and `json.loads` raises a `ValueError`.
#
# Go on from the newest save that is whole, or from `fresh()` if there is none. The losses must be the same as
# if nothing had happened, to the last bit, so nothing may be forgotten: not the momentum, nor the step that
# the learning rate depends on, nor the random numbers.


# %% solution="resume"
def resume(saves, steps):
    """Go on to step number `steps`. Return (begun, losses, w, flat(state)). About 11 lines.

    saves  list of texts, oldest first; any of them may be torn
    steps  the step to stop at

    begun   the step that the save you went on from was at
    losses  of the steps that you made
    w       the weights at the end
    flat(state)  the state at the end as a list of numbers (flat is given)
    """
    ### BEGIN SOLUTION
    state = fresh()
    for text in reversed(saves):
        try:
            state = json.loads(text)
            break
        except ValueError:
            continue
    begun, losses = state["step"], []
    while state["step"] < steps:
        state, loss = one_step(state)
        losses.append(loss)
    return begun, losses, state["w"], flat(state)
    # What has to be saved is what one_step reads: weights, momentum, step (the rate warms up by it) and random numbers. json keeps
    # floats to the last bit. Usual slips: `steps` more steps instead of up to number `steps`, only the last text tried (two may be
    # torn, or all), a momentum or seed begun anew; the loss curve looks plausible in each case, so only the comparison of bits finds
    # it.
    ### END SOLUTION


# %% grade="ps11/resume"
grade("ps11/resume", resume)

# %% [markdown]
# ## 5. As many as the crowd needs *
#
# Kubernetes' autoscaler looks at a metric, here the load on each replica, and sets
#
# $$\text{wanted} = \left\lceil \text{replicas} \times \frac{\text{metric}}{\text{target}} \right\rceil,$$
#
# unless metric / target lies within 0.1 of 1, when nothing changes. What is wanted is held between `least` and
# `most`. Going up is done at once. Going down waits, because a crowd may come back: the replicas fall only to the
# largest number that was wanted at any of the last `window` ticks, the present one included. With target 10, least 1,
# most 100 and window 3:
#
# ```text
#   load        40   40   20   20   20   5
#   wanted       4    4    2    2    2   1
#   replicas     4    4    4    4    2   2
# ```


# %% solution="autoscale"
def autoscale(loads, target, least, most, window):
    """Return the number of replicas after each tick. About 9 lines.

    loads   one for each tick; the metric is load / replicas
    target  load that a replica should have
    least, most, window  as above; the run begins with `least` replicas, and nothing remembered
    """
    ### BEGIN SOLUTION
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = max(wanted[-1], min(replicas, max(wanted[-window:])))
        result.append(replicas)
    return result
    # Since metric is load / replicas, the wish is ceil(load / target), but for the tolerance, which compares with what there is now.
    # max(wanted[-window:]) alone would do as well, as this wish is among them. Usual slips: the load for the metric, limits applied
    # after remembering, replicas remembered for wishes (they never fall while a window lasts), waiting on the way up.
    ### END SOLUTION


# %% grade="ps11/autoscale"
grade("ps11/autoscale", autoscale)

# %%
with when_written():
    loads = [5, 12, 40, 90, 160, 150, 60, 20, 15, 10, 10, 10]
    for window in 1, 4:
        print(f"window {window}: {autoscale(loads, 10, 1, 12, window)}")

# %% [markdown]
# ## 6. Predict and explain
#
# The table under task 2 shows a larger batch making tokens cheaper. The director concludes that all visitors
# should be served in one batch of 512.
#
# 1. **Predict** what doubling the batch multiplies by, from 8 requests to 16 and from 512 to 1,024: the dollars
#    for a million tokens, and the tokens a second for each request. Put factors in the place of the `...`; they
#    are computed when all four are said, by your `cost_per_token`. Where does it stop getting cheaper?
# 2. **Explain** both with the two times of a step, and with what must fit into memory.
# 3. What would you tell the director?
#
# About 150 words.


# %%
def doubled(what):
    name, batch = what
    found = [cost_per_token(cards[2], 7e9, 2, 100e6, requests, 0.6) for requests in (batch, 2 * batch)]
    (few, dear), (many, cheap) = found
    return cheap / dear if name == "dollars" else many / few / 2


predict(
    {("dollars", 8): ..., ("dollars", 512): ..., ("each request", 8): ..., ("each request", 512): ...},
    doubled,
    found="times",
)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** The weights are read once a step, whatever the batch, so their share of the cost is divided among more requests. At
# the same time each request brings a cache that must be read in each step too: the step grows, and every request's own stream becomes
# slower. When the caches together are as large as the weights, after 140 requests here (14 GB / 100 MB), doubling the batch no longer
# comes near halving the price; with caches only, it would stay the same. Much later arithmetic would be short.
#
# Before that the desk is full: 80 GB less 14 GB of weights leave room for some 660 caches of 100 MB, and longer conversations have
# larger ones.
#
# I would tell the director that the batch is limited by how long a visitor may wait for a word, and that a batch can only be
# as large as the number of visitors who ask at the same time. Choose the largest batch that keeps each request's stream fast enough to read.
#
# **Marking.** 1 point: cheaper per token, slower for each request. 2 points: weights are shared by the batch, caches are not. 1 point: the
# limit from the desk, or from arithmetic. 1 point: a recommendation that names latency.
# ### END SOLUTION
