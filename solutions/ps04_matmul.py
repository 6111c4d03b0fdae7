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
# # Problem set 4: Matrix multiplication
#
# You write the same product three times. The arithmetic never changes; what changes is how often each number
# is carried from memory to where it is used: for every multiplication, then for every sixteen, then for every
# sixty-four.
#
# **About 4.5 hours** (estimated; the star about 1.5 more), after chapter 4. Of the 100 points 8 need a CUDA GPU.
# Write in the place of `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted.
# Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs
# the row. Tasks 6 and 7 are a *case*: somebody else's program fails. Find the cause with the course's tools, write a
# function that says what the broken program does, then mend the program.

# %%
import numpy as np
from IPython.display import display
from numba import cuda, float32

import warplab
from warplab import plots
from warplab.check import climb, grade, needs, predict, puzzle, when_written

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# `c = a @ b`, all of them 64 x 64, with a thread for each element of `c`. How many threads read `a[0, 0]`?

# %%
puzzle("ps04/uses", ...)

# %% [markdown]
# In blocks of 16 x 16 threads a warp is two rows of 16. Each lane reads `b[k, col]`, float32. How many
# sectors of 32 bytes?

# %%
puzzle("ps04/two_rows", ...)

# %% [markdown]
# For each k a thread with 4 x 4 elements of `c` reads 8 numbers and makes 16 multiply-adds. How many reads
# for each multiply-add if it has 8 x 8?

# %%
puzzle("ps04/reads", ...)

# %% [markdown]
# ResNet-50 has a 3 x 3 convolution from 64 to 64 channels over 56 x 56 places, and ends in a linear layer from 2,048
# to 1,000. How many times as much work is the convolution as the linear layer? (To 1 %.)

# %%
puzzle("ps04/small_layer", ...)

# %% [markdown]
# The matrices are `a` (M x K), `b` (K x N) and `c` (M x N), and every element is a 32-bit float. Until part
# 3, blocks have 16 x 16 threads, one thread for each element of `c`.

# %%
TILE = 16


def matrices(m, n, k, seed=0):
    """Random a and b, and a c full of NaN: what you do not write will show."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    return a, b, np.full((m, n), np.nan, np.float32)


def grid_for(m, n):
    """The smallest grid of TILE x TILE blocks over an (m, n) matrix; x counts columns."""
    return -(-n // TILE), -(-m // TILE)


# %% [markdown]
# ## 1. One thread, one chain
#
# Each element of the product is a chain of multiply-adds, and no chain needs another:
#
# ```text
#                        b  (K x N)
#                       . . # . . .
#                       . . # . . .         c[1, 2] = a[1, 0] * b[0, 2]
#                       . . # . . .                 + a[1, 1] * b[1, 2]
#     a  (M x K)        c  (M x N)                  + a[1, 2] * b[2, 2]
#     . . .             . . . . . .
#     # # #             . . # . . .
#     . . .             . . . . . .
# ```
#
# So one thread takes one element, walks along a row of `a` and down a column of `b`, and keeps the sum in a
# local variable. Start the sum with `float32(0)`: a plain `0.0` has 64 bits, and most GPUs are slow at those.


# %% solution="matmul_naive"
@cuda.jit
def matmul_naive(a, b, c):
    """Compute one element of c = a @ b. About 7 lines.

    a  float32 (M, K)
    b  float32 (K, N)
    c  float32 (M, N)

    1. Do nothing if this thread has no element of c.
    2. Sum a[row, k] * b[k, col] over k in a local variable.
    3. Write the sum, once.
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    # Each element is a chain of its own, and its sum stays in a register until the end. Usual slips: x taken for the
    # row (right for squares, and 17 sectors for each k instead of 4), K taken from c, the sum kept in c itself, and
    # 0.0 for float32(0), which no counter of this task minds and most GPUs do.
    M, N = c.shape
    if col >= N or row >= M:
        return
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
    ### END SOLUTION


# %% grade="ps04/matmul_naive"
grade("ps04/matmul_naive", matmul_naive)

# %% [markdown]
# For M = N = K = 64, each of 128 warps makes 2 load requests for each of 64 values of k: 16,384.

# %%
a, b, c = matrices(64, 64, 64)
naive = warplab.profile(matmul_naive[grid_for(64, 64), (TILE, TILE)], a, b, c)
naive

# %% [markdown]
# ## 2. Sixteen uses for each number
#
# Each number of `a` and `b` that a block needs is wanted by 16 of its threads. So let the block fetch it
# once. In one *step* each thread copies one element of a 16 x 16 tile of `a` and one of `b` into shared
# memory, and adds 16 products from the two tiles to its sum; then the tiles move on, to the right in `a`,
# down in `b`.
#
# ```text
#                                 b
#                            +---------+
#                   step 0   |  TILE   |
#                            +---------+
#                   step 1   |    |    |
#                            +----v----+
#          a
#     step 0  step 1         c
#   +--------+--------+      +---------+
#   |  TILE  |  -->   |      | block's |
#   +--------+--------+      +---------+
# ```
#
# Two things go wrong in most first versions.
#
# - **Barriers.** A thread may read a tile only when all have written it, and may overwrite it only when all
#   have read it: two `cuda.syncthreads()` in each step. *Every* thread of the block must reach both, also
#   those that have no element of `c`: no early `return` here.
# - **Edges.** M, N and K need not be multiples of 16. Where a tile hangs over the edge, put a 0 into it.


# %% solution="matmul_tiled"
@cuda.jit
def matmul_tiled(a, b, c):
    """Compute one element of c = a @ b through tiles in shared memory. About 18 lines.

    a, b, c  as in matmul_naive
    Launched with blocks of TILE x TILE threads, TILE = 16.

    For each step, that is K / TILE times, rounded up:
    1. Write one element of each tile, or 0 where it would lie outside the matrix.
    2. Wait for all threads.
    3. Add TILE products to acc.
    4. Wait for all threads.
    At the end write acc, if this thread has an element of c.
    """
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    acc = float32(0)
    ### BEGIN SOLUTION
    # A thread fetches for its block, even if it has no element of c: it may not leave early, and it writes a 0 where
    # a tile hangs over, or the others read what nobody wrote. Usual slips: no second barrier (the check names both
    # lines), K // TILE steps. Requests fall 16 times, sectors 8 times, because the naive load of a was a broadcast.
    M, N = c.shape
    K = a.shape[1]
    for start in range(0, K, TILE):
        tile_a[ty, tx] = float32(0)
        tile_b[ty, tx] = float32(0)
        if row < M and start + tx < K:
            tile_a[ty, tx] = a[row, start + tx]
        if start + ty < K and col < N:
            tile_b[ty, tx] = b[start + ty, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < M and col < N:
        c[row, col] = acc
    ### END SOLUTION


# %% grade="ps04/matmul_tiled"
grade("ps04/matmul_tiled", matmul_tiled)

# %% [markdown]
# On a CUDA GPU, full points up to twenty times the library's time.

# %% grade="ps04/matmul_tiled" rubric="time"
grade("ps04/matmul_tiled", matmul_tiled, rubric="time")

# %% [markdown]
# The requests should fall by 16, the width of the tile. The sectors fall by 8 only; the last task asks why.

# %%
tiled = warplab.profile(matmul_tiled[grid_for(64, 64), (TILE, TILE)], a, b, c)
for name in ("requests", "sectors"):
    before, after = getattr(naive.global_load, name), getattr(tiled.global_load, name)
    print(f"{name:9} {before:7,} -> {after:6,}, {before / max(after, 1):.0f} times")

# %% [markdown]
# ## 3.* Sixteen results for each thread
#
# Now the kernel waits for shared memory, which it reads twice for each multiply-add. The cure is the same: use again
# what you fetched. A thread with 4 x 4 elements of `c` makes 16 multiply-adds from 8 reads.
#
# ```text
#                  b0  b1  b2  b3
#             a0    *   *   *   *
#             a1    *   *   *   *
#             a2    *   *   *   *
#             a3    *   *   *   *
# ```
#
# One arrangement that works: blocks of 16 x 16 threads, each block a 64 x 64 tile of `c`. Thread (tx, ty) takes rows
# `ty, ty + 16, ty + 32, ty + 48` of the tile, and columns `tx, tx + 16 ...`. In a step the block brings in a 64 x 16
# tile of `a` and a 16 x 64 tile of `b`, four elements of each for every thread. Let neighbouring threads load
# neighbours along a row: loads that run down a column touch four times the sectors in as many requests, and lose
# their points.
#
# You choose the launch: `plan_register_tiled` returns it.

# %% solution="matmul_register_tiled"
SIDE = 64  # a block computes SIDE x SIDE elements of c
STEP = 16  # values of k that it brings in at a time
EACH = 4  # a thread computes EACH x EACH elements


def plan_register_tiled(M, N, K):
    """Return (grid, block) for c of shape (M, N), each as (x, y). About 2 lines."""
    ### BEGIN SOLUTION
    return (-(-N // SIDE), -(-M // SIDE)), (SIDE // EACH, SIDE // EACH)
    ### END SOLUTION


@cuda.jit
def matmul_register_tiled(a, b, c):
    """Compute EACH x EACH elements of c = a @ b. About 35 lines.

    a, b, c  as in matmul_naive, launched as plan_register_tiled says

    1. Set the sums to 0: acc = cuda.local.array((EACH, EACH), float32).
    2. For each step: bring in both tiles, and wait. For each k read EACH values of a
       and EACH of b, and add their products to the sums. Wait.
    3. Write the sums that lie inside c.
    """
    ### BEGIN SOLUTION
    # The loops over the sums have constant bounds, so all sixteen live in registers, and the profile shows no spills.
    # Rows ty + 16 i and columns tx + 16 j (not 4 ty + i) keep neighbouring threads on neighbouring banks and places
    # of c. For each k and 512 elements there are 8.5 load requests; the tiled kernel makes 34. Usual slips: a
    # plan with x and y exchanged or rounded down, and guards for the loads but none for the stores.
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE
    tile_a = cuda.shared.array((SIDE, STEP), float32)
    tile_b = cuda.shared.array((STEP, SIDE), float32)
    acc = cuda.local.array((EACH, EACH), float32)
    from_a = cuda.local.array(EACH, float32)
    M, N = c.shape
    K = a.shape[1]
    for i in range(EACH):
        for j in range(EACH):
            acc[i, j] = 0
    for start in range(0, K, STEP):
        for i in range(EACH):
            row, col = ty + 16 * i, tx + 16 * i
            inside_a = top + row < M and start + tx < K
            tile_a[row, tx] = a[top + row, start + tx] if inside_a else float32(0)
            inside_b = start + ty < K and left + col < N
            tile_b[ty, col] = b[start + ty, left + col] if inside_b else float32(0)
        cuda.syncthreads()
        for k in range(STEP):
            for i in range(EACH):
                from_a[i] = tile_a[ty + 16 * i, k]
            for j in range(EACH):
                from_b = tile_b[k, tx + 16 * j]
                for i in range(EACH):
                    acc[i, j] += from_a[i] * from_b
        cuda.syncthreads()
    for i in range(EACH):
        for j in range(EACH):
            row, col = top + ty + 16 * i, left + tx + 16 * j
            if row < M and col < N:
                c[row, col] = acc[i, j]
    ### END SOLUTION


# %% grade="ps04/matmul_register_tiled"
grade("ps04/matmul_register_tiled", matmul_register_tiled, plan_register_tiled)

# %% [markdown]
# On a CUDA GPU, full points from a third of the library's speed on.

# %% grade="ps04/matmul_register_tiled" rubric="time"
grade("ps04/matmul_register_tiled", matmul_register_tiled, plan_register_tiled, "time")

# %% [markdown]
# ## One product climbed
#
# The same product of 256 x 256 matrices goes on through sets 5, 7 and 13, one step at a time. `climb` counts a
# version, says what binds it, keeps it in `climb.json` beside the sets' folders, and draws the stairs. A step's
# height is the FLOP/s that arithmetic and L1 permit on a full H100: a bound, not a measurement. Before a
# version is counted, put one sentence in the place of the `...`: what does it do less often than the one
# before? There are no points; set 13 hands the log in. Which of the two steps up is the larger, and why?

# %%
n = 256 if warplab.device().kind == "simt" else 2048  # a GPU times it, too
big = matrices(n, n, n)
with when_written():
    climb("naive", matmul_naive[grid_for(n, n), (TILE, TILE)], *big, note=...)

# %%
with when_written():
    climb("tiles", matmul_tiled[grid_for(n, n), (TILE, TILE)], *big, note=...)

# %%
with when_written():
    climb("registers", matmul_register_tiled[plan_register_tiled(n, n, n)], *big, note=...)

# %% [markdown]
# ## 4. How much work is in a network?
#
# A multiply-add is two floating-point operations (FLOPs), and three kinds of layer make nearly all of a
# network's:
#
# | layer | its products |
# |---|---|
# | `{"type": "linear", "in": 784, "out": 100, "tokens": 1}` | every input row (`batch` x `tokens` of them) times an `in` x `out` matrix |
# | `{"type": "conv2d", "in": 3, "out": 64, "kernel": 7, "stride": 2, "padding": 3, "height": 224, "width": 224}` | each pixel of each of the `out` channels is a sum over `in` x `kernel` x `kernel` products; it yields $\lfloor (h + 2\,\text{padding} - \text{kernel}) / \text{stride} \rfloor + 1$ rows, columns likewise |
# | `{"type": "attention", "tokens": 128, "width": 768, "heads": 12}` | for each head, all queries with all keys, then the weights with all values; a head is `width / heads` wide |
#
# Biases, `relu` and `softmax` are not products: 0. With batch 32 this linear layer has 2 x 32 x 784 x 100 =
# 5,017,600 FLOPs.


# %% solution="count_flops"
def count_flops(layers, batch):
    """Return a list of whole numbers, the FLOPs of each layer. About 14 lines.

    layers  list of dicts as in the table; a type that is not in it counts 0
    batch   number of inputs that go through together
    """
    ### BEGIN SOLUTION
    # FLOPs follow from the shapes of the products alone. Usual slips: multiply-adds for FLOPs; attention as one
    # product, or every head as wide as the layer; no entry for a layer without products; tokens left out.
    flops = []
    for layer in layers:
        multiply_adds = 0
        if layer["type"] == "linear":
            multiply_adds = batch * layer["tokens"] * layer["in"] * layer["out"]
        elif layer["type"] == "conv2d":
            reach = 2 * layer["padding"] - layer["kernel"]
            rows = (layer["height"] + reach) // layer["stride"] + 1
            cols = (layer["width"] + reach) // layer["stride"] + 1
            window = layer["in"] * layer["kernel"] ** 2
            multiply_adds = batch * rows * cols * layer["out"] * window
        elif layer["type"] == "attention":
            multiply_adds = 2 * batch * layer["tokens"] ** 2 * layer["width"]
        flops.append(2 * multiply_adds)
    return flops
    ### END SOLUTION


# %% grade="ps04/count_flops"
grade("ps04/count_flops", count_flops)

# %% [markdown]
# The first layer of ResNet-50, counted in a forward pass of PyTorch, and by you:

# %%
with when_written():
    needs("torch")
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    layer = torch.nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3)
    first = {"type": "conv2d", "in": 3, "out": 64, "kernel": 7, "stride": 2, "padding": 3}
    first |= {"height": 224, "width": 224}
    with FlopCounterMode(display=False) as counter:
        layer(torch.zeros(1, 3, 224, 224))
    print(f"PyTorch {counter.get_total_flops():,}")
    print(f"you     {count_flops([first], batch=1)[0]:,}")

# %% [markdown]
# ## 5. A convolution is a product
#
# Lay out the patches of an image under a convolution's window as columns, and every result is one element of
# a matrix product. With one channel and a 2 x 2 window:
#
# ```text
#     image     patches as columns     weights as a row
#     1 2 3     1 2 4 5
#     4 5 6     2 3 5 6                10 20 30 40
#     7 8 9     4 5 7 8
#               5 6 8 9
#               ^ the patch at (0, 0), read row by row
# ```
#
# The first result is `10*1 + 20*2 + 30*4 + 40*5 = 370`. With C channels a column holds the patch of channel
# 0, then that of channel 1, and so on; with F filters there are F rows of weights. The order of the columns
# is that of the output image, along its rows.


# %% solution="conv_as_matmul"
def conv_as_matmul(image, weights, stride):
    """Return (columns, out). NumPy only; about 10 lines.

    image    float32 (C, H, W)
    weights  float32 (F, C, R, S)
    columns  float32 (C*R*S, H_out*W_out), one patch a column
    out      float32 (F, H_out, W_out), one product of the weights with columns

    H_out = (H - R) // stride + 1, and W_out = (W - S) // stride + 1.
    """
    ### BEGIN SOLUTION
    # Once the patches are columns, every output is a row times a column. Usual slips: patches as rows, R for S,
    # float64 columns, weights turned round as in a mathematician's convolution. A loop over the R * S places in the
    # window, with a strided slice for each, needs fewer turns than this one over the pixels.
    F, C, R, S = weights.shape
    H_out = (image.shape[1] - R) // stride + 1
    W_out = (image.shape[2] - S) // stride + 1
    columns = np.empty((C * R * S, H_out * W_out), np.float32)
    for y in range(H_out):
        for x in range(W_out):
            top, left = y * stride, x * stride
            columns[:, y * W_out + x] = image[:, top : top + R, left : left + S].ravel()
    out = weights.reshape(F, C * R * S) @ columns
    return columns, out.reshape(F, H_out, W_out)
    ### END SOLUTION


# %% grade="ps04/conv_as_matmul"
grade("ps04/conv_as_matmul", conv_as_matmul)

# %% [markdown]
# Two 3 x 3 filters that find edges, in one product:

# %%
with when_written():
    y, x = np.mgrid[0:96, 0:96].astype(np.float32)
    disc = np.hypot(x - 40, y - 44) < 26
    diamond = abs(x - 66) + abs(y - 62) < 20
    scene = (0.6 * disc + 0.4 * diamond).astype(np.float32)
    edge = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    _, edges = conv_as_matmul(scene[None], np.stack([edge, edge.T])[:, None], 1)
    panels = np.hstack([scene[1:-1, 1:-1], *(0.5 + edges / 8)]).clip(0, 1)
    alt = "A disc and a diamond; their upright edges; their level edges."
    display(plots.picture((255 * panels).astype(np.uint8), alt=alt, zoom=2))

# %% [markdown]
# ## 6. A case: the wrong digit
#
# A post office reads the one digit on each envelope with a network. A layer was meant to compute `y = w @ x`,
# with a row of w for each output. In the last layer these are the scores of ten digits, and the highest one
# decides to which town a letter goes.
#
# The author tried the program with w the unit matrix of 64 x 64: y was x, as it should be. The post office writes:
# "The letters go to the wrong towns. And with the layer before it, from 40 numbers to 64, it does not even run." Here
# is the program, with eight letters:


# %%
@cuda.jit
def layer_given(w, x, y):
    out = cuda.grid(1)
    if out < y.size:
        score = 0.0
        for k in range(w.shape[0]):
            score += x[k] * w[k, out]
        y[out] = score


letters = np.random.default_rng(4)
weights, layer_before = (letters.standard_normal(s, dtype=np.float32) for s in ((10, 64), (64, 40)))
pixels, scores = letters.standard_normal((8, 64), dtype=np.float32), np.zeros((8, 10), np.float32)
for one in range(8):
    layer_given[1, 32](weights, pixels[one], scores[one])
print("NumPy      ", (pixels @ weights.T).argmax(1))
print("layer_given", scores.argmax(1))
try:
    layer_given[2, 32](layer_before, pixels[0, :40].copy(), np.zeros(64, np.float32))
except warplab.LaunchError as error:
    print(error)

# %% [markdown]
# With a w that is 0 but for one number you can tell what is multiplied with what. Before you mend the program, write
# what it *does*, in NumPy.


# %% solution="layer_cause"
def layer_cause(w, x):
    """Return the y that layer_given writes, float32. NumPy only; about 2 lines.

    w  float32 (N, K), with N not above K
    x  float32 (K,)
    """
    ### BEGIN SOLUTION
    # It takes w for its transpose, in the index and in the length of the sum: for each output a column of w, of which only the first N
    # places are looked at, and with them only the first N numbers of x. A unit matrix is its own transpose, so the author's test
    # could not tell. Usual slip: w.T @ x, for which x is too long, or all of K.
    outputs = w.shape[0]
    return x[:outputs] @ w[:, :outputs]
    ### END SOLUTION


# %% grade="ps04/layer_cause"
grade("ps04/layer_cause", layer_cause)

# %% [markdown]
# ## 7. The digit, mended
#
# Mend the program. With the indices exchanged and a sum over `w.shape[1]` the scores are right, but 32 threads
# read from 32 rows, as `warplab.profile` shows. Give each warp one output, and let its lanes read neighbours in
# one row. Sum in 32 bits.


# %% solution="layer"
@cuda.jit
def layer(w, x, y):
    """Compute one output of y = w @ x with a warp. About 9 lines.

    w  float32 (N, K)
    x  float32 (K,)
    y  float32 (N,)

    Launched with blocks of 32 x 8 threads, a warp for each output: lane threadIdx.x, output below.
    """
    out = 8 * cuda.blockIdx.x + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    ### BEGIN SOLUTION
    # Every 32nd number of the row for each lane, so that a request is of 32 neighbours, and shuffles as in set 3. A warp has one output,
    # so it leaves as a whole. Usual slips: every lane walks along the whole row; each lane a run of neighbours; 0.0 for float32(0).
    if out < y.size:
        score = float32(0)
        for k in range(lane, x.size, 32):
            score += w[out, k] * x[k]
        for step in range(5):
            score += cuda.shfl_down_sync(0xFFFFFFFF, score, 16 >> step)
        if lane == 0:
            y[out] = score
    ### END SOLUTION


# %% grade="ps04/layer"
grade("ps04/layer", layer)

# %%
for one in range(8):
    layer[2, (32, 8)](weights, pixels[one], scores[one])
print("NumPy", (pixels @ weights.T).argmax(1))
print("layer", scores.argmax(1))

# %% [markdown]
# ## 8. Predict and explain
#
# Take M = N = K = 1024, and a naive and a tiled kernel that both have blocks of 32 x 32 threads, so that a
# warp is one row.
#
# 1. **Predict** by what factor the *load requests* fall, and by what factor the *sectors* fall, in the place
#    of the `...`. (Do it for one warp and 32 values of k.) Once both are filled in, the cell counts your naive
#    kernel and chapter 4's tiled one at 64 x 64, where the factors are the same.
# 2. **Explain** why the two differ, and why at a tile width of 16 the second was 8.
# 3. A colleague sees sectors per request *rise* in the tiled kernel, and concludes that it reads memory
#    worse. What do you answer?
#
# About 150 words.

# %%
from warplab.figures.kernels import tiled


def falls_by(what):
    counted = []
    for kernel in matmul_naive, tiled(32):
        p = warplab.profile(kernel[(2, 2), (32, 32)], *matrices(64, 64, 64))
        counted.append(getattr(p.global_load, what))
    return counted[0] / counted[1]


predict({"requests": ..., "sectors": ...}, falls_by, found="fall by")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** *One warp, 32 values of k.* The naive kernel makes 2 requests for each k, 64 in all. In `a`
# all 32 threads read the same number (a broadcast): 1 sector. In `b` they read 32 neighbouring floats, 128
# bytes: 4 sectors. That is 5 sectors for each k, 160 in all. The tiled kernel makes 2 requests, one row of each
# tile, 4 sectors each: 8 sectors. So **requests fall by 32**, the width of the tile, and **sectors by 160 / 8 =
# 20**.
#
# The factors differ because the naive kernel's reads of `a` were requests that cost almost no sectors:
# thirty-two threads shared one. The tiled kernel fetches `a` in full rows, 4 sectors a request. At width 16 a
# warp is two rows of 16: naive 2 + 2 = 4 sectors for each k, 64 for 16 of them; tiled 4 + 4 = 8. Hence 8.
#
# Sectors per request rises from 5 / 2 = 2.5 to 4, but that is a ratio: broadcasts, which waste a request on one
# number, make it look good. What memory has to deliver is the *total*, and that fell by 20.
#
# **Marking.** 1 point: requests 32, from counting. 1 point: sectors 20, from counting (1 + 4 against 8 in 32).
# 1 point: names the broadcast of `a` as the reason. 1 point: the same count for width 16 gives 8. 1 point:
# totals decide, not the ratio.
# ### END SOLUTION
