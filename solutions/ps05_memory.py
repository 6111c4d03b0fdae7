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
# # Problem set 5: Memory
#
# A survey ship tows a sonar over the sea floor and writes down numbers all day, far more than anybody
# computes with them. You write the kernels of its chart room: each is right in a few lines, and good only
# when it goes through the door seldom.
#
# **About 5 hours**, after chapter 5. Of the 100 points 9 need a CUDA GPU; `help(grade)` says how they are
# counted.

# %%
import math

import numpy as np
import warplab
from numba import cuda, float32
from warplab import plots, specs
from warplab.check import grade, puzzle, when_written

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Each of 32 lanes reads one float32, `x[index]`. Choose the index so that they touch as many sectors as they
# can.

# %%
puzzle("ps05/waste", lambda lane: ...)

# %% [markdown]
# In shared memory all 32 lanes read `table[5]`. How many wavefronts does that take?

# %%
puzzle("ps05/same_word", ...)

# %% [markdown]
# For 8 x 8 places and their four neighbours a block fetches a table with a border of one. How many numbers
# for each place?

# %%
puzzle("ps05/halo", ...)

# %% [markdown]
# In float32, what is the smallest whole number x for which `exp(x)` is infinite?

# %%
puzzle("ps05/overflow", ...)

# %% [markdown]
# ## 1. Every s-th number
#
# The sonar writes depth, echo, temperature, depth, echo, temperature ... To get one of them, read every s-th
# number from a first one on:
#
# ```python
# out = x[offset :: stride][: out.size]        # for stride 0: x[offset], again and again
# ```


# %% solution="copy_strided"
@cuda.jit
def copy_strided(x, stride, offset, out):
    """Copy one number, x[i * stride + offset] to out[i]. About 3 lines.

    x       float32
    stride  0, 1, 2 ...
    offset  0, 1, 2 ...
    out     float32 (n,), a thread for each number and some to spare
    """
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    # The stride belongs to the side that is read, so the store is coalesced whatever the stride. Usual slips: i compared with x.size,
    # (i + offset) * stride, and the stride on the left, which scatters. The loads cost 4 to 32 sectors a request.
    if i < out.size:
        out[i] = x[i * stride + offset]
    ### END SOLUTION


# %% grade="ps05/copy_strided"
grade("ps05/copy_strided", copy_strided)

# %% [markdown]
# **Predict, then count.** How many sectors does a warp's load touch? Write six numbers into the list first.

# %%
predicted = [None, None, None, None, None, None]
cases = [(1, 0), (1, 3), (2, 0), (3, 0), (8, 0), (100, 0)]
x, out = np.zeros(30_000, np.float32), np.zeros(256, np.float32)
for (stride, offset), guess in zip(cases, predicted, strict=True):
    p = warplab.profile(copy_strided[1, 256], x, stride, offset, out)
    print(
        f"stride {stride:>3}, offset {offset}: {p.global_load.sectors_per_request:g} sectors a request, you said {guess}"
    )

# %% [markdown]
# ## 2. Rows into columns
#
# The plotter wants the chart's rows as columns. A warp that reads along a row and writes down a column
# touches 32 different rows, a whole sector each for four bytes.
#
# Go through a table in shared memory, and write along the rows of the *result*. The thread that brought a
# number in is not the one that takes it out.
#
# ```text
#      x                      table                  out
#   row  . . a b c ...  ->  a b c ...           row  a d g ...
#        . . d e f          d e f     read down      b e h
#        . . g h i          g h i     columns   ->   c f i
# ```
#
# In a table 32 words wide, all 32 numbers of a column lie in the same bank. One word of padding for each
# row moves every row on by one bank.


# %% solution="transpose"
@cuda.jit
def transpose(x, out):
    """Bring one number in, take another one out. About 9 lines. Blocks have 32 x 32 threads, one for each number of x.

    x    float32 (rows, cols), any size
    out  float32 (cols, rows)

    1. Put x[row, col] on the table, if there is such a number. All meet.
    2. Find the row and column of *out* that this thread writes, from blockIdx with its x and y exchanged.
    3. Write it, if there is such a place.
    """
    ### BEGIN SOLUTION
    # Thread (tx, ty) takes out what thread (ty, tx) brought in, so both walks go along rows: 4 + 4 sectors a warp. The two places are
    # different ones, so each has its own bounds check, and nobody may leave before the barrier. Usual slips: the block's x and y not
    # exchanged, one check for both, rows of 32 words (31 conflicts a load), the padding as a 33rd row, which changes nothing.
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    col, row = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[tx, ty]
    ### END SOLUTION


# %% grade="ps05/transpose"
grade("ps05/transpose", transpose)

# %% [markdown]
# On a CUDA GPU, full points up to twice a copy's time.

# %% grade="ps05/transpose" rubric="time"
grade("ps05/transpose", transpose, rubric="time")

# %% [markdown]
# ## 3. Warmth that spreads
#
# Water evens out its temperature. In one step
#
# $$\text{out} = x + 0.1\,(\text{up} + \text{down} + \text{left} + \text{right} - 4x),$$
#
# with 0 outside the chart. Straight from memory, that is five loads for each place. Through a table, a block
# of 32 x 32 loads 34 x 34 numbers: its own and a *halo* of one.
#
# Two loops, over rows `threadIdx.y, threadIdx.y + 32, ...` below 34 and over columns likewise, share the work
# out so that neighbours still fetch neighbours.


# %% solution="stencil_shared"
@cuda.jit
def stencil_shared(x, out):
    """One step for one place. About 14 lines. Blocks have 32 x 32 threads, one for each place.

    x, out  float32 (rows, cols), any size

    1. Together with the block, fill a table of 34 x 34: the halo too, and 0 outside the chart. All meet.
    2. Compute this thread's place from the table, if there is such a place.
    """
    ### BEGIN SOLUTION
    # The zeros go onto the table, so that the formula needs no cases. A row of 34 touches 7 sectors where 32 numbers fill 4; five loads
    # a place would ask for 22. Usual slips: threads without a place leave before they have fetched, the halo outside the chart is left as
    # it was, tx runs down the columns. A bare 0.1 makes the last line a 64-bit one: right, and slow on most GPUs.
    tile = cuda.shared.array((34, 34), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = 32 * cuda.blockIdx.y - 1, 32 * cuda.blockIdx.x - 1
    for r in range(ty, 34, 32):
        for c in range(tx, 34, 32):
            row, col = top + r, left + c
            inside = 0 <= row < x.shape[0] and 0 <= col < x.shape[1]
            tile[r, c] = x[row, col] if inside else float32(0)
    cuda.syncthreads()
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        here = tile[ty + 1, tx + 1]
        around = tile[ty, tx + 1] + tile[ty + 2, tx + 1] + tile[ty + 1, tx] + tile[ty + 1, tx + 2]
        out[row, col] = here + float32(0.1) * (around - 4 * here)
    ### END SOLUTION


# %% grade="ps05/stencil_shared"
grade("ps05/stencil_shared", stencil_shared)

# %% [markdown]
# On a CUDA GPU, full points up to three times a copy's time. Time the five loads, too: caches may answer four
# of them.

# %% grade="ps05/stencil_shared" rubric="time"
grade("ps05/stencil_shared", stencil_shared, rubric="time")

# %% [markdown]
# Forty steps from a single warm spot:

# %%
here, there = np.zeros((64, 96), np.float32), np.zeros((64, 96), np.float32)
here[20:24, 30:34] = 1
for _ in range(40):
    stencil_shared[(3, 2), (32, 32)](here, there)
    here, there = there, here
alt = "A square spot that has spread into a soft round one."
plots.picture((255 * np.sqrt(here / here.max())).astype(np.uint8), alt=alt, zoom=4)

# %% [markdown]
# ## 4. Under which roof?
#
# No kernel passes the roof $\min(\text{peak}, \text{intensity} \times \text{bandwidth})$. Adding two
# vectors on an H100 SXM is 1 FLOP for 12 bytes, 0.083 FLOP/B; times 3.35 TB/s that is 0.28 TFLOP/s, of 67
# that the FP32 peak promises.


# %% solution="roofline_place"
def roofline_place(flops, bytes_moved, seconds, peak, bandwidth):
    """Return (intensity, attainable, short, share). About 4 lines.

    intensity   FLOP for each byte
    attainable  FLOP/s under the roof, at this intensity
    short       0 if the kernel is short of bandwidth (left of the ridge), 1 if it is short of arithmetic
    share       what it did, flops / seconds, as a share of what it could have done
    """
    ### BEGIN SOLUTION
    # The minimum picks the side of the ridge by itself. The share is of the roof above this kernel, not of the peak: a vector sum at 80 %
    # of the bandwidth is a good kernel at less than half a per cent of an H100's FP32 peak.
    intensity = flops / bytes_moved
    attainable = min(peak, intensity * bandwidth)
    short = int(intensity >= peak / bandwidth)
    return intensity, attainable, short, flops / seconds / attainable
    ### END SOLUTION


# %% grade="ps05/roofline_place"
grade("ps05/roofline_place", roofline_place)

# %% [markdown]
# Your stencil under the roofs of two cards, by the bytes asked of the caches; fewer reach the memory.

# %%
with when_written():
    p = warplab.profile(stencil_shared[(3, 2), (32, 32)], here, there)
    moved = p.global_load.bytes + p.global_store.bytes
    for name in "t4", "h100-sxm":
        gpu = specs.get(name)
        intensity, attainable, short, _ = roofline_place(
            p.flops, moved, 1.0, gpu["peak_fp32"].si, gpu["memory_bandwidth"].si
        )
        print(
            f"{name}: {intensity:.2f} FLOP/B, at most {attainable / 1e12:.2f} TFLOP/s, short of {('bandwidth', 'arithmetic')[short]}"
        )

# %% [markdown]
# ## 5. Softmax in two passes
#
# A softmax makes shares of scores. Powers of large ones overflow, so the row's maximum is subtracted first:
#
# ```python
# top = x.max()
# out = exp(x - top) / exp(x - top).sum()
# ```
#
# Three passes over the row: for the maximum, for the sum, for the result. The first two fit into one, with a
# maximum `top` and a sum `total` so far. When x comes,
#
# $$\text{new} = \max(\text{top}, x), \qquad
# \text{total} \leftarrow \text{total}\cdot e^{\text{top} - \text{new}} + e^{x - \text{new}}, \qquad
# \text{top} \leftarrow \text{new}.$$
#
# Two pairs merge by the same rule, so each thread goes through a part of the row, and all meet in a tree: the
# new maximum is the larger one, and each total is multiplied by $e^{\text{its top} - \text{new}}$ before they
# are added. A thread that had no number brings $(-\infty, 0)$, and $-\infty - (-\infty)$ is NaN.


# %% solution="softmax_online"
@cuda.jit
def softmax_online(x, out):
    """The softmax of one row. About 22 lines. A block of 128 threads for each row.

    x, out  float32 (rows, n), any n

    1. Each thread: (top, total) of the numbers t, t + 128, ... of the row.
    2. A tree on two tables merges the pairs of all threads; skip a partner that brought nothing.
    3. Each thread: exp(x - top) / total of its numbers.
    """
    ### BEGIN SOLUTION
    # A pair (top, total) stands for the sum total * exp(top), so pairs may be merged in any order, and a tree will do. Usual slips: pairs
    # of idle threads merged (inf - inf is NaN), a maximum that begins at 0 (wrong for rows far below zero), a round of the tree
    # without a barrier, each thread dividing by its own total, thread 0 merging all pairs. Two reads and a write of each number; three passes make it four trips.
    tops = cuda.shared.array(128, float32)
    totals = cuda.shared.array(128, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    top, total = float32(-math.inf), float32(0)
    for i in range(t, x.shape[1], 128):
        new = max(top, x[row, i])
        total = total * math.exp(top - new) + math.exp(x[row, i] - new)
        top = new
    tops[t], totals[t] = top, total
    cuda.syncthreads()
    stride = 64
    while stride > 0:
        if t < stride and tops[t + stride] > -math.inf:
            new = max(tops[t], tops[t + stride])
            mine = totals[t] * math.exp(tops[t] - new)
            totals[t] = mine + totals[t + stride] * math.exp(tops[t + stride] - new)
            tops[t] = new
        cuda.syncthreads()
        stride //= 2
    for i in range(t, x.shape[1], 128):
        out[row, i] = math.exp(x[row, i] - tops[0]) / totals[0]
    ### END SOLUTION


# %% grade="ps05/softmax_online"
grade("ps05/softmax_online", softmax_online)

# %% [markdown]
# On a CUDA GPU, full points up to four times a copy's time.

# %% grade="ps05/softmax_online" rubric="time"
grade("ps05/softmax_online", softmax_online, rubric="time")

# %% [markdown]
# ## 6. Attention without the square *
#
# A small transformer reads n pings, each a vector of 16 numbers:
#
# ```python
# scores = q @ k.T / 4                      # n x n
# out = softmax(scores) @ v                 # softmax along each row
# ```
#
# With the trick of task 5 nobody keeps n times n scores: a query goes through the keys once, keeps `top`,
# `total` and a running weighted sum `acc` of the values, and rescales both when a new maximum comes.
#
# Every query needs every key, so the block fetches keys and values into shared memory once for its 64
# queries.


# %% solution="flash_attention"
@cuda.jit
def flash_attention(q, k, v, out):
    """Attention for one query. About 30 lines. Blocks have 64 threads, one for each query.

    q, k, v, out  float32 (n, 16), any n

    1. Keep this thread's query and acc in local arrays (cuda.local.array). A thread without a query goes along with zeros.
    2. For every 64 keys: fetch them and their values together; meet; update top, total and acc; meet.
    3. Write acc / total, if this thread has a query.
    """
    ### BEGIN SOLUTION
    # Task 5's pair, and acc beside it: whatever was summed under the old maximum is rescaled when a larger score comes. All 64 threads
    # fetch, so that k and v come once for 64 queries, in whole sectors; every score lives in a register and is gone. Usual slips: acc
    # not rescaled, the last round's leftover keys used again, one barrier instead of two, an early return.
    keys = cuda.shared.array((64, 16), float32)
    values = cuda.shared.array((64, 16), float32)
    mine = cuda.local.array(16, float32)
    acc = cuda.local.array(16, float32)
    i, t, n = cuda.grid(1), cuda.threadIdx.x, q.shape[0]
    for d in range(16):
        mine[d] = q[i, d] if i < n else float32(0)
        acc[d] = 0
    top, total = float32(-math.inf), float32(0)
    for first in range(0, n, 64):
        count = min(64, n - first)
        for place in range(t, count * 16, 64):
            keys[place // 16, place % 16] = k[first + place // 16, place % 16]
            values[place // 16, place % 16] = v[first + place // 16, place % 16]
        cuda.syncthreads()
        for j in range(count):
            score = float32(0)
            for d in range(16):
                score += mine[d] * keys[j, d]
            score *= float32(0.25)
            new = max(top, score)
            old, weight = math.exp(top - new), math.exp(score - new)
            total = total * old + weight
            for d in range(16):
                acc[d] = acc[d] * old + weight * values[j, d]
            top = new
        cuda.syncthreads()
    if i < n:
        for d in range(16):
            out[i, d] = acc[d] / total
    ### END SOLUTION


# %% grade="ps05/flash_attention"
grade("ps05/flash_attention", flash_attention)

# %% [markdown]
# ## 7. Predict and explain
#
# The table of your transpose has rows of 33 words. Suppose that somebody takes another width.
#
# 1. **Predict**, before you run the cell: how many wavefronts does a warp's load of a column take for rows of
#    32, 33, 34, 40 and 48 words?
# 2. **Explain** the rule behind the five numbers.
# 3. Which widths, in 4-byte words, would you try for 64-bit numbers, and what would you look at to know?
#
# About 150 words.


# %%
def column_reader(width):
    """A kernel that reads the columns of a table whose rows are `width` words long."""

    @cuda.jit
    def read(out):
        table = cuda.shared.array((32, width), float32)
        t = cuda.threadIdx.x
        for row in range(32):
            table[row, t] = row
        cuda.syncthreads()
        out[t] = table[t, 5]

    return read


for width in 32, 33, 34, 40, 48:
    p = warplab.profile(column_reader(width)[1, 32], np.zeros(32, np.float32))
    print(f"rows of {width}: {p.shared_load.wavefronts:g} wavefronts")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** 32, 1, 2, 8 and 16 wavefronts. Lane t reads word width * t + 5, which lies in bank (width * t + 5) mod 32.
# With 32 words all lanes are in the same bank, and it hands out one word at a time. With 33 every lane is one bank further on:
# 32 different banks, one wavefront. In general the lanes fall on 32 / gcd(width, 32) different banks, so that gcd(width, 32)
# lanes share each: gcd is 2 for 34, 8 for 40, 16 for 48. Any odd width is free of conflicts; more padding is not better.
#
# A number of 64 bits takes two neighbouring banks, and a warp's load of 32 of them needs two wavefronts at the least, since it
# fetches 256 bytes. I would try rows of 32 numbers and one more, which is 66 words, and look at the conflicts in the
# profile, that is the wavefronts beyond those two.
#
# **Marking.** 1 point: prediction, or the wrong one corrected. 2 points: bank = word mod 32, lanes in the same bank take turns.
# 1 point: the gcd, or "odd widths are free". 1 point: 64-bit numbers need two wavefronts anyway, and a sensible way to test.
# ### END SOLUTION
