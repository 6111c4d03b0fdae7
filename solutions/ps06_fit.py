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
# # Problem set 6: Does it fit?
#
# A small laboratory has one card, a good idea, and no money for a second card. You do the sums before a run
# stops with "out of memory" after lunch, make the run smaller in two ways, and serve the trained model.
#
# **About 4 hours** (estimated), after chapter 6, without a GPU. Write in the place of `raise NotImplementedError()` and
# delete that line; `help(grade)` says how points are counted. Unless a task says otherwise, sizes are whole
# numbers from 1 on. Inputs must stay as they are: a changed one costs the row.

# %%
from warplab.check import grade, needs, predict, puzzle, when_written

needs("torch")  # what the sets before could do without

import torch
from torch.nn import functional
from warplab import models, specs, vram

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Training in FP32 throughout, with Adam. How many bytes are kept for each parameter? (Activations come on
# top.)

# %%
puzzle("ps06/plain", ...)

# %% [markdown]
# 7 billion parameters, mixed precision, Adam. How many cards of 24 GB does that state alone need?

# %%
puzzle("ps06/cards", ...)

# %% [markdown]
# The way back takes twice as long as the way forward. With a checkpoint at every layer, each runs forward
# once more. By what factor does the step get longer?

# %%
puzzle("ps06/again", ...)

# %% [markdown]
# 100 layers keep every s-th input and, at one time, the s results that are made again: 100 / s + s arrays.
# Which s keeps fewest?

# %%
puzzle("ps06/segments", ...)

# %% [markdown]
# ## 1. The bill
#
# The course's own transformer (`warplab.models.Transformer`) has embeddings for the vocabulary and for the
# positions, `layers` blocks, a norm, and an output layer without a bias. A block of width w has
#
# | part | weights | biases and the like |
# |---|---|---|
# | queries, keys, values | 3 w² | 3 w |
# | output of attention | w² | w |
# | into the hidden layer, 4 w wide | 4 w² | 4 w |
# | out of it | 4 w² | w |
# | two norms | | 4 w |
#
# A recipe's `precision` is "fp32" or "mixed" (16-bit weights and gradients, and an FP32 copy of the weights),
# its `optimizer` is "sgd", "momentum" (one number a parameter, FP32) or "adam" (two). Mixed precision and
# Adam keep 2 + 2 + 4 + 8 = 16 bytes for each parameter. For the way back, a block keeps 16 arrays of batch x
# tokens x width, in FP32 or in 16 bits.


# %% solution="training_bytes"
def training_bytes(model, recipe, batch, tokens):
    """Return (parameters, state, activations), whole numbers, the last two in bytes. About 8 lines.

    model          dictionary with vocabulary, context, width, layers, heads
    recipe         dictionary with precision and optimizer
    batch, tokens  sequences in a batch, tokens in a sequence

    state        weights, gradients, optimiser and, in mixed precision, the FP32 copy
    activations  of all blocks; what the rest keeps is small
    Parameters must be right to the last one; in the other two 10 % are allowed.
    """
    ### BEGIN SOLUTION
    width = model["width"]
    parameters = (2 * model["vocabulary"] + model["context"]) * width + 2 * width
    parameters += model["layers"] * (12 * width**2 + 13 * width)
    moments = {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    state = parameters * (8 + moments)  # 4 + 4, or 2 + 2 + 4: eight either way
    number = 4 if recipe["precision"] == "fp32" else 2
    return parameters, state, 16 * model["layers"] * batch * tokens * width * number
    # Eight bytes before the optimiser, whatever the precision: mixed precision moves bytes, it saves none here. Usual slips: the
    # output layer forgotten because it looks like the embedding, norms with one array, no FP32 copy, activations of one block. The
    # last two rows allow 10 %, so that a forgotten bias costs one row and not two.
    ### END SOLUTION


# %% grade="ps06/training_bytes"
grade("ps06/training_bytes", training_bytes)

# %% [markdown]
# Is it true? A real step of Adam, and torch's own record of what it keeps:

# %%
with when_written():
    described = {"vocabulary": 13, "context": 12, "width": 128, "layers": 6, "heads": 4}
    model, rows = models.Transformer(width=128, layers=6), models.worksheet(64)
    parameters, state, activations = training_bytes(
        described, {"precision": "fp32", "optimizer": "adam"}, 64, 11
    )
    adam = torch.optim.Adam(model.parameters())
    with vram.saving(model) as kept:
        loss = model.loss(rows)
    loss.backward()
    adam.step()
    held = sum(
        t.nbytes
        for p in model.parameters()
        for t in (p, p.grad, adam.state[p]["exp_avg"], adam.state[p]["exp_avg_sq"])
    )
    print(
        f"parameters   {parameters:>10,} computed, {sum(p.numel() for p in model.parameters()):>10,} counted"
    )
    print(f"state        {state:>10,} computed, {held:>10,} counted")
    print(f"activations  {activations:>10,} computed, {kept.bytes:>10,} counted")

# %% [markdown]
# ## 2. Throw away, and make again
#
# For the way back autograd keeps the result of every layer. You keep the input instead, and run the layers
# once more. For the stack
#
# ```python
# def plain(x, w):                        # w: (layers, width, width)
#     for weights in w:
#         x = torch.tanh(x @ weights)
#     return x
# ```
#
# write a `torch.autograd.Function`. `forward` computes under `no_grad`, so that nothing is kept but what you give to
# `ctx.save_for_backward`. `backward` gets the gradient of the result and owes one for each of forward's inputs: take
# x and w from `ctx.saved_tensors`, detach them, let them require gradients, run `plain` under `torch.enable_grad()`,
# and ask `torch.autograd.grad` for the rest. `plain` as it stands earns nothing, and neither does an answer that
# keeps every layer's input somewhere else.


# %% solution="checkpointed"
def plain(x, w):
    for weights in w:
        x = torch.tanh(x @ weights)
    return x


class Again(torch.autograd.Function):
    """`plain`, with nothing kept but its inputs. About 10 lines in all."""

    @staticmethod
    def forward(ctx, x, w):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, w)
        return plain(x, w).clone()
        # Nothing of `plain` is kept: forward of a Function runs without autograd. clone() matters when there is no layer, and y would
        # be x itself.
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_out):
        ### BEGIN SOLUTION
        x, w = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
        with torch.enable_grad():
            y = plain(x, w)
        grad_x, grad_w = torch.autograd.grad(y, (x, w), grad_out, allow_unused=True)
        return grad_x, torch.zeros_like(w) if grad_w is None else grad_w
        # Usual slips: no enable_grad (nothing to go back from), y.backward() on tensors that were not detached (it runs on into what made
        # x), ones for grad_out, which is right only under a sum, and None for w when there is no layer. Kept are x and w, 2,816 bytes in
        # the check where autograd keeps 27,392; one segment is simplest and makes all results again at once, so the peak on the way back
        # is that of the plain stack.
        ### END SOLUTION


def checkpointed(x, w):
    """tanh(... tanh(x @ w[0]) ... @ w[-1]) with gradients for x and w, keeping only a few arrays.

    x  float32 tensor (batch, width)
    w  float32 tensor (layers, width, width), layers may be 0
    """
    return Again.apply(x, w)


# %% grade="ps06/checkpointed"
grade("ps06/checkpointed", Again)

# %%
with when_written():
    x, w = torch.randn(256, 32, requires_grad=True), torch.randn(24, 32, 32).div(6).requires_grad_()
    for name, stack in ("plain", plain), ("checkpointed", checkpointed):
        with vram.saving() as kept:
            stack(x, w)
        print(f"{name:>13}: {kept.bytes:>9,} bytes kept")

# %% [markdown]
# ## 3. A batch in parts
#
# The batch does not fit, so it comes in parts, whose gradients together must be that of the whole. The error
# is
#
# $$E(w) = \frac1n \sum_{i=1}^{n} (x_i\cdot w - y_i)^2$$
#
# over the n rows of *all* parts, and the last part is often smaller than the others. Mean errors of 2 over 3
# rows and 6 over 1 row are (3·2 + 1·6)/4 = 3 together, not (2 + 6)/2 = 4. Then the gradient is clipped: if it
# is longer than `max_norm`, it is scaled down to that length.
#
# A part whose gradient has an infinity or a NaN in it is left out, with its rows, as if it had never come.


# %% solution="accumulate"
def accumulate(w, batches, max_norm):
    """Return the clipped gradient of the mean squared error over all batches, float32 (width,). About 12 lines.

    w         float32 (width,), a NumPy array as are all arrays here; torch.tensor(w) makes a tensor of it
    batches   list of [x, y], x float32 (rows, width), y float32 (rows,), rows may differ
    max_norm  a number, or math.inf

    One part at a time is enough. If no part is left, return zeros.
    """
    ### BEGIN SOLUTION
    gradient, rows = torch.zeros(len(w)), 0
    for x, y in batches:
        weights = torch.tensor(w, requires_grad=True)
        error = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y), reduction="sum")
        error.backward()
        if weights.grad.isfinite().all():
            gradient += weights.grad
            rows += len(y)
    gradient /= max(rows, 1)
    length = gradient.norm()
    if length > max_norm:
        gradient *= max_norm / length
    return gradient.numpy()
    # A sum divided by all rows is right for any cut, a mean of means for equal parts only; and which rows count is known when the last
    # part has been looked at, so the division waits. Clipping is not linear, so it waits as well. Usual slips: dividing by the parts, or
    # by rows that were left out; a gradient that a broken part has been added to already; keeping the losses and going back once
    # (right, and every part stays on the desk); each number clipped, not the length.
    ### END SOLUTION


# %% grade="ps06/accumulate"
grade("ps06/accumulate", accumulate)

# %% [markdown]
# ## 4. How much fits beside it?
#
# State is paid once, activations for every sequence. With a checkpoint at every layer a sequence keeps each
# block's input (an array of tokens x width) and, while a block is computed again, that block's 16 arrays.


# %% solution="largest_batch"
def largest_batch(model, recipe, tokens, card, checkpoint):
    """Return the largest number of sequences that fit, 0 if none does. About 6 lines.

    model, recipe  as in task 1
    tokens         of a sequence
    card           bytes
    checkpoint     True for a checkpoint at every layer
    """
    ### BEGIN SOLUTION
    _, state, one = training_bytes(model, recipe, 1, tokens)
    if checkpoint:
        array = one // (16 * model["layers"])
        one = array * (model["layers"] + 16)
    return max(0, (card - state) // one)
    # The first thing to see is that state and batch have nothing to do with each other. Usual slips: 16 arrays a layer with
    # checkpoints as well, rounding instead of cutting, int() of a quotient for a negative card. For GPT-2's size a checkpoint at
    # every layer gives twelve times the sequences: 48 * 16 arrays become 48 + 16.
    ### END SOLUTION


# %% grade="ps06/largest_batch"
grade("ps06/largest_batch", largest_batch)

# %% [markdown]
# The largest GPT-2, with 1,024 tokens, on three cards:

# %%
with when_written():
    gpt2 = {"vocabulary": 50_257, "context": 1024, "width": 1600, "layers": 48, "heads": 25}
    recipe = {"precision": "mixed", "optimizer": "adam"}
    for name in "rtx-4090", "a100-sxm", "h200-sxm":
        card = int(specs.get(name)["memory_capacity"].si)
        print(
            f"{name}: {largest_batch(gpt2, recipe, 1024, card, False)} sequences, {largest_batch(gpt2, recipe, 1024, card, True)} with checkpoints"
        )

# %% [markdown]
# ## 5. The server's notebook
#
# Now the model answers, and keeps for each token a key and a value in every layer: for each of `kv_heads`
# heads a vector of `head_size` numbers of `number` bytes. (Several of the `heads` of queries may share one.)
# `local` of its `layers`, never all, look back over the last `window` tokens of a sequence only, and keep no
# more than those.


# %% solution="kv_cache_bytes"
def kv_cache_bytes(model, batch, tokens, free):
    """Return (bytes, most). About 8 lines.

    model   dictionary with layers, local, window, heads, kv_heads, head_size, number
    batch, tokens  sequences, and tokens in each

    bytes   of the cache of the whole batch
    most    tokens of the longest single sequence whose keys and values fit into `free` bytes
    """
    ### BEGIN SOLUTION
    each = 2 * model["kv_heads"] * model["head_size"] * model["number"]
    layers, local, window = model["layers"], model["local"], model["window"]
    kept = (layers - local) * tokens + local * min(tokens, window)
    most = free // (each * layers)
    if most >= window:
        most = (free // each - local * window) // (layers - local)
    return each * batch * kept, most
    # Up to the window all layers grow with the text, beyond it only those that look at all of it: two slopes, and `most` asks on which of
    # them one ends. Usual slips: heads for kv_heads, one array for two, the window for the whole batch, `batch` in `most`.
    ### END SOLUTION


# %% grade="ps06/kv_cache_bytes"
grade("ps06/kv_cache_bytes", kv_cache_bytes)

# %% [markdown]
# ## 6. Predict and explain
#
# A colleague wants to train all weights of a model of 13 billion parameters on a card of 24 GB, with mixed
# precision, a checkpoint at every layer, and batches of one sequence.
#
# 1. **Predict** which is larger, `"state"` or `"activations"`, how many gigabytes (1e9 bytes) each has without
#    a checkpoint, and how many times its card the state fills, in the place of the `...`. The sums come when
#    all are said, from your `training_bytes`.
# 2. **Explain** what each of her three measures makes smaller, and what it leaves as it is.
# 3. How could she adapt this model on this card at all?
#
# About 150 words.


# %%
def bill(what):
    model = {"vocabulary": 32_000, "context": 2048, "width": 5120, "layers": 40, "heads": 40}
    _, state, activations = training_bytes(model, {"precision": "mixed", "optimizer": "adam"}, 1, 2048)
    return {
        "larger": "state" if state > activations else "activations",
        "state, GB": state / 1e9,
        "activations, GB": activations / 1e9,
        "state over the card": state / 24e9,
    }[what]


predict(
    {"larger": ..., "state, GB": ..., "activations, GB": ..., "state over the card": ...},
    bill,
    found="computed",
)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** The state is short: 13 billion times 16 bytes are 208 GB, almost nine times the card, before the first
# activation. Even the 16-bit weights alone are 26 GB and do not fit.
#
# Mixed precision halves activations, but the state stays at 16 bytes a parameter (2 + 2 + 4 + 4 + 4 instead of 4 + 4 + 4 + 4). Checkpointing
# and a batch of one make activations smaller and touch nothing else. All three work on the part that is not the trouble.
#
# The weights themselves must become smaller and most of them must stop being trained: quantised to 8 bits (13 GB) or 4 bits
# (6.5 GB) and frozen, with small adapters that have gradients and an optimiser of their own. Or the state is spread over many cards.
#
# **Marking.** 1 point: the state (or the weights) is short, with a factor between 5 and 12. 2 points: what each of the
# three makes smaller, one off for each wrong statement. 1 point: mixed precision leaves 16 bytes a parameter. 1 point: quantised
# frozen weights with adapters, or more cards.
# ### END SOLUTION
