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
# when it asks memory seldom.
#
# **About 4.5 hours** (estimated; the stars about 1.5 more), after chapter 5. Of the 100 points 9 need a CUDA GPU.
# Write in the place of `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted.
# Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs
# the row. Tasks 8 and 9 are a *case*, with a star: somebody else's program fails. Find the cause with the course's
# tools, write a function that says what the broken program does, then mend the program.

# %%
import math

import numpy as np
import warplab
from numba import cuda, float32, int32
from warplab import plots, specs
from warplab.check import climb, grade, needs, predict, puzzle, when_written

needs("cuda")  # what the sets before could do without

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
    stride  0 or more
    offset  0 or more
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
# **Predict, then count.** How many sectors does a warp's load touch, for a stride and an offset? Put a number in
# the place of each `...`: the counts come when all six are said, and what you said stays in this cell.

# %%
x, out = np.zeros(30_000, np.float32), np.zeros(256, np.float32)


def sectors_a_request(case):
    stride, offset = case
    return warplab.profile(copy_strided[1, 256], x, stride, offset, out).global_load.sectors_per_request


predict(
    {(1, 0): ..., (1, 3): ..., (2, 0): ..., (3, 0): ..., (8, 0): ..., (100, 0): ...},
    sectors_a_request,
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
    """One step for one place. About 11 lines. Blocks have 32 x 32 threads, one for each place.

    x, out  float32 (rows, cols), any size

    1. Together with the block, fill a table of 34 x 34: the halo too, and 0 outside the chart. All meet.
    2. Compute this thread's place from the table, if there is such a place.
    """
    tile = cuda.shared.array((34, 34), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = 32 * cuda.blockIdx.y - 1, 32 * cuda.blockIdx.x - 1  # the chart's place of tile[0, 0]
    ### BEGIN SOLUTION
    # The zeros go onto the table, so that the formula needs no cases. A row of 34 touches 7 sectors where 32 numbers fill 4; five loads
    # a place would ask for 22. Usual slips: threads without a place leave before they have fetched, the halo outside the chart is left as
    # it was, tx runs down the columns. A bare 0.1 makes the last line a 64-bit one: right, and slow on most GPUs.
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
# On a CUDA GPU, full points up to three times a copy's time. Time a kernel with the five loads, too: caches may
# answer four of them.

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
# A kernel has a roof at each level of memory: its *intensity* there, FLOP for each byte that must pass that
# level, times the level's bandwidth. L1 passes every request; HBM must bring each sector only once. The lowest
# roof binds, unless the peak is lower still.
#
# Adding two long vectors is 1 FLOP for 12 bytes at every level, 0.083 FLOP/B. On an H100 SXM, HBM's 3.35 TB/s
# make 0.28 TFLOP/s of that, of 67 that the FP32 peak promises.


# %% solution="roofline_place"
def roofline_place(flops, moved, seconds, peak, bandwidths):
    """Return (intensities, attainable, binds, share). About 6 lines.

    moved, bandwidths  of each level of memory, from L1 outwards: bytes that must pass it, and bytes/s; lists

    intensities  FLOP for each byte, of each level
    attainable   FLOP/s under the lowest of all roofs and the peak
    binds        the number of the level with the lowest roof, from 0; len(moved) if the peak is lower
    share        what it did, flops / seconds, as a share of what it could have done
    """
    ### BEGIN SOLUTION
    # The minimum picks what binds by itself. The share is of the lowest roof, not of the peak: a vector sum at 80 % of the bandwidth is
    # a good kernel at less than half a per cent of an H100's FP32 peak. Usual slip: one intensity for all levels.
    intensities = [flops / b for b in moved]
    roofs = [i * bandwidth for i, bandwidth in zip(intensities, bandwidths)]
    limits = [*roofs, peak]
    attainable = min(limits)
    binds = limits.index(attainable)
    return intensities, attainable, binds, flops / seconds / attainable
    ### END SOLUTION


# %% grade="ps05/roofline_place"
grade("ps05/roofline_place", roofline_place)

# %% [markdown]
# Your stencil on two cards: what passes L1 is counted request by request, what passes L2 and HBM sector by
# sector, each once. `warplab.bounds` does the same.

# %%
with when_written():
    p = warplab.profile(stencil_shared[(3, 2), (32, 32)], here, there)
    distinct = p.footprint.fetched + p.footprint.written
    for name in "v100-sxm2", "a100-sxm":
        gpu = specs.get(name)
        rates = [gpu[f"{level}_bandwidth"].si for level in ("l1", "l2", "memory")]
        moved = [128 * p.l1_wavefronts, distinct, distinct]
        intensities, attainable, binds, _ = roofline_place(p.flops, moved, 1.0, gpu["peak_fp32"].si, rates)
        told = ", ".join(f"{i:.2f}" for i in intensities)
        print(
            f"{name}: {told} FLOP/B, at most {attainable / 1e12:.2f} TFLOP/s, bound by {('L1', 'L2', 'HBM', 'FP32')[binds]}"
        )

# %% [markdown]
# ## 5. Find the limit
#
# Three kernels make depths of echo times. Each is right, and none is as fast as it could be. **Guess** what
# binds each on a T4, then run the cells and read the three reports: first the bounds, then the findings.


# %%
@cuda.jit
def plotted(echo, out):
    """Rows as columns."""
    table = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    table[ty, tx] = echo[row, col]
    cuda.syncthreads()
    col, row = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    t = table[tx, ty]
    out[row, col] = (0.0125 * t + 0.75) * t


@cuda.jit
def listed(echo, out):
    """Number by number."""
    row, col = cuda.grid(2)
    t = echo[row, col]
    out[row, col] = (0.0125 * t + 0.75) * t


@cuda.jit
def refined(echo, out):
    """By a series of 32 terms."""
    col, row = cuda.grid(2)
    t, depth = echo[row, col], 0.0
    for _ in range(32):
        depth = 0.98 * depth + t
    out[row, col] = depth


def counts_of(p):
    """What find_the_limit is told of a profile."""
    return {
        "blocks": math.prod(p.grid),
        "fp32": p.unit_flops.get("fp32", 0),
        "fp64": p.unit_flops.get("fp64", 0),
        "requests": p.global_memory.requests,
        "global_wavefronts": round(p.global_memory.passes),
        "wavefronts": p.shared_memory.wavefronts,
        "conflicts": p.shared_memory.bank_conflicts,
        "fetched": p.footprint.fetched,
        "written": p.footprint.written,
    }


echo, out = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
reports = {
    k.__name__: warplab.report(k[(8, 8), (32, 32)], echo, out, device="t4")
    for k in (plotted, listed, refined)
}
reports["plotted"]

# %%
reports["listed"]

# %%
reports["refined"]

# %% [markdown]
# There are four changes. One that finds nothing to change leaves a kernel as it is.
#
# | | change |
# |---|---|
# | 1 | `float32(...)` around every constant: the same operations in 32 bits |
# | 2 | one word of padding for each row of the table |
# | 3 | the indices exchanged: neighbours in x take neighbours in a row, one wavefront a request |
# | 4 | `echo` and `out` in float16: half the bytes, as many wavefronts; the arithmetic stays as it is |
#
# Write the reader of such reports. A launch takes at least the longest of five times: FP32 and FP64, FLOP over
# peak; L1 and shared memory, 128 bytes for each wavefront; L2, the bytes fetched and written; HBM, the bytes
# fetched (what is written may stay in L2). A request to global memory takes wavefronts too: by our
# reading of an H200's counters, L1 keeps its lines in the banks of shared memory, so a column of numbers lies in
# one bank and takes 32. With fewer blocks than SMs, the first three have only blocks / sms of their rate.


# %% solution="find_the_limit"
def find_the_limit(counts, device):
    """Return (binds, change, factor) for one launch. About 18 lines.

    counts  as counts_of returns them; fetched and written are bytes of distinct sectors; wavefronts and
            conflicts are of shared memory, and every conflict is one of the wavefronts; requests and
            global_wavefronts are of global memory
    device  a dictionary: sms; FLOP/s, fp32 and fp64, and bytes/s, l1, l2 and hbm, of all SMs together

    binds   what takes longest: 0 FP32, 1 FP64, 2 L1 and shared memory, 3 L2, 4 HBM
    change  the number of the change after which the bound is lowest; 0 if none lowers it
    factor  the bound before that change over the bound after it; what binds then may be something else
    """

    ### BEGIN SOLUTION
    # A change is a change of the counts, so each is made to them and the bound is taken again. The factor is never that of one level
    # alone: what was second now binds. Usual slips: idle SMs at work, stores charged to HBM, uncoalesced requests taken for one
    # wavefront each, 64-bit operations that vanish instead of becoming 32-bit ones, float16 taken for half the requests.
    def times(c):
        busy = min(1, c["blocks"] / device["sms"])
        wavefronts = c["wavefronts"] + c["global_wavefronts"]
        return [
            c["fp32"] / (device["fp32"] * busy),
            c["fp64"] / (device["fp64"] * busy),
            128 * wavefronts / (device["l1"] * busy),
            (c["fetched"] + c["written"]) / device["l2"],
            c["fetched"] / device["hbm"],
        ]

    changed = [
        counts,
        counts | {"fp32": counts["fp32"] + counts["fp64"], "fp64": 0},
        counts | {"wavefronts": counts["wavefronts"] - counts["conflicts"]},
        counts | {"global_wavefronts": counts["requests"]},
        counts | {"fetched": counts["fetched"] / 2, "written": counts["written"] / 2},
    ]
    before = times(counts)
    after = [max(times(c)) for c in changed]
    change = after.index(min(after))
    return before.index(max(before)), change, max(before) / min(after)
    ### END SOLUTION


# %% grade="ps05/find_the_limit"
grade("ps05/find_the_limit", find_the_limit)

# %% [markdown]
# What your function says of the three. Make a change that it names in the kernel above, run both cells again,
# and hold the new bound to the factor. (The registry has no bandwidth for a T4's L2, so it is left out there.)
#
# A bound is a floor and no forecast. The scattered sectors of `listed` come from L2 several times wherever L1
# does not keep them until the neighbours ask; no floor shows that, a profiler's L2 counters do.

# %%
with when_written():
    for card in "t4", "a100-sxm":
        gpu = specs.get(card)
        device = {"sms": gpu["sms"].value, "fp32": gpu["peak_fp32"].si, "fp64": gpu["peak_fp64"].si}
        for level, fact in {"l1": "l1_bandwidth", "l2": "l2_bandwidth", "hbm": "memory_bandwidth"}.items():
            device[level] = gpu[fact].si if fact in gpu else math.inf
        for name, report in reports.items():
            binds, change, factor = find_the_limit(counts_of(report.profile), device)
            limit = ("FP32", "FP64", "L1 and shared memory", "L2", "HBM")[binds]
            print(
                f"{card:>8}, {name}: {limit} binds; change {change} makes the bound {factor:.2f} times lower"
            )

# %% [markdown]
# ## 6. Softmax in two passes
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
    """The softmax of one row. About 18 lines. A block of 128 threads for each row.

    x, out  float32 (rows, n), any n

    1. Each thread: (top, total) of the numbers t, t + 128, ... of the row.
    2. A tree on two tables merges the pairs of all threads; skip a partner that brought nothing.
    3. Each thread: exp(x - top) / total of its numbers.
    """
    tops = cuda.shared.array(128, float32)
    totals = cuda.shared.array(128, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    top, total = float32(-math.inf), float32(0)
    ### BEGIN SOLUTION
    # A pair (top, total) stands for the sum total * exp(top), so pairs may be merged in any order, and a tree will do. Usual slips: pairs
    # of idle threads merged (inf - inf is NaN), a maximum that begins at 0 (wrong for rows far below zero), a round of the tree
    # without a barrier, each thread dividing by its own total, thread 0 merging all pairs. Each number is read twice and written once; three passes would make that four trips.
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
# ## 7. Attention without the square *
#
# A small transformer reads n pings, each a vector of 16 numbers:
#
# ```python
# scores = q @ k.T / 4                      # n x n
# out = softmax(scores) @ v                 # softmax along each row
# ```
#
# With the trick of task 6 nobody keeps n times n scores: a query goes through the keys once, keeps `top`,
# `total` and a running weighted sum `acc` of the values, and rescales both when a new maximum comes.
#
# Every query needs every key, so the block fetches keys and values into shared memory once for its 64
# queries.


# %% solution="flash_attention"
@cuda.jit
def flash_attention(q, k, v, out):
    """Attention for one query. About 24 lines. Blocks have 64 threads, one for each query.

    q, k, v, out  float32 (n, 16), any n

    1. Keep this thread's query and acc in local arrays. A thread without a query goes along with zeros.
    2. For every 64 keys: fetch them and their values together; meet; update top, total and acc; meet.
    3. Write acc / total, if this thread has a query.
    """
    keys = cuda.shared.array((64, 16), float32)
    values = cuda.shared.array((64, 16), float32)
    mine = cuda.local.array(16, float32)
    acc = cuda.local.array(16, float32)
    i, t, n = cuda.grid(1), cuda.threadIdx.x, q.shape[0]
    ### BEGIN SOLUTION
    # Task 6's pair, and acc beside it: whatever was summed under the old maximum is rescaled when a larger score comes. All 64 threads
    # fetch, so that k and v come once for 64 queries, in whole sectors; every score lives in a register and is gone. Usual slips: acc
    # not rescaled, the last round's leftover keys used again, one barrier instead of two, an early return.
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
# ## 8. A case: the sea bed that is too busy *
#
# The echoes of sand, mud and rock differ in strength, 0 to 31. The program below was meant to count how often each
# strength occurs, so that the captain knows where the anchor will hold. Each lane of a block counts its own echoes in
# 32 places of its own, without waiting for anybody, and at the end the block adds the lanes' counts.
#
# Its author expected every count to begin at zero. The captain writes: "It does not even start. And the one
# that the yard repaired counts right, but the calmer the sea is, the more bank conflicts it has." Here are the
# program and a repaired one, over a calm sea and a rough one:


# %%
@cuda.jit
def echoes_given(x, out):
    table = cuda.shared.array(1024, int32)
    lane = cuda.threadIdx.x
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[32 * lane + x[i]] += 1
    cuda.syncthreads()
    total = 0
    for other in range(32):
        total += table[32 * other + lane]
    cuda.atomic.add(out, lane, total)


@cuda.jit
def repaired(x, out):
    table = cuda.shared.array(1024, int32)
    lane = cuda.threadIdx.x
    for place in range(lane, 1024, 32):
        table[place] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[32 * lane + x[i]] += 1
    cuda.syncthreads()
    total = 0
    for other in range(32):
        total += table[32 * other + lane]
    cuda.atomic.add(out, lane, total)


seas = {
    "calm": np.full(8192, 7, np.int32),
    "rough": np.random.default_rng(5).integers(0, 32, 8192).astype(np.int32),
}
try:
    echoes_given[4, 32](seas["rough"], np.zeros(32, np.int32))
except warplab.LaunchError as error:
    print(error)
for name, x in seas.items():
    p = warplab.profile(repaired[4, 32], x, np.zeros(32, np.int32))
    print(
        f"{name}: {p.shared_memory.bank_conflicts:,} bank conflicts in {p.shared_memory.requests:,} requests"
    )

# %% [markdown]
# Find out what a single round of a warp costs: a block, 32 echoes, and strengths that you choose. Before you mend it,
# write what the program *does* with them.


# %% solution="echoes_cause"
def echoes_cause(strengths):
    """Return the bank conflicts of one `table[32 * lane + x[i]] += 1` of a warp, its load and its store. About 2 lines.

    strengths  the 32 strengths of its lanes, a list
    """
    ### BEGIN SOLUTION
    # The bank is the word modulo 32: 32 * lane drops out, and the strength alone is left. Lanes with the same strength are in the same
    # bank at different words, so they take turns, once for the load and once for the store. Usual slips: conflicts taken for
    # wavefronts, one too many; all equal pairs counted, where only the longest queue counts; the store forgotten.
    longest = max(strengths.count(strength) for strength in strengths)
    return 2 * (longest - 1)
    ### END SOLUTION


# %% grade="ps05/echoes_cause"
grade("ps05/echoes_cause", echoes_cause)

# %% [markdown]
# ## 9. The sea bed, mended *
#
# Mend the program: no leftovers on the table, and no bank conflicts while it counts, whatever the sea is like. The
# zeroing has none either; what the block does once at the end may have some. Each block still hands in 32 sums.


# %% solution="echoes"
@cuda.jit
def echoes(x, out):
    """Count how often each strength stands in x. About 10 lines. Blocks have 32 threads.

    x    int32 (n,), 0 to 31, in any order; a grid-stride loop, for the grid may be smaller or larger
    out  int32 (32,), 0 at the start
    """
    table = cuda.shared.array(1024, int32)
    lane = cuda.threadIdx.x
    ### BEGIN SOLUTION
    # Strength s of a lane lies at 32 s + lane, so every lane has a bank of its own, whatever the strengths. To add up one strength a
    # lane then walks along a row; where all begin at place 0 they meet in one bank, so each begins at its own. Usual slips: a word of
    # padding, which helps a calm sea and not a rough one; zeros written by one lane, or down the columns.
    for place in range(lane, 1024, 32):
        table[place] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[32 * x[i] + lane] += 1
    cuda.syncthreads()
    total = 0
    for other in range(32):
        total += table[32 * lane + (other + lane) % 32]
    cuda.atomic.add(out, lane, total)
    ### END SOLUTION


# %% grade="ps05/echoes"
grade("ps05/echoes", echoes)

# %%
for name, x in seas.items():
    counted = np.zeros(32, np.int32)
    p = warplab.profile(echoes[4, 32], x, counted)
    print(f"{name}: {p.shared_memory.bank_conflicts:,} bank conflicts, {counted.sum():,} echoes counted")

# %% [markdown]
# ## One product climbed
#
# Two steps more for the stairs of set 4, without points. The kernel below is the one with 4 x 4 results a
# thread, in CUDA C++, with its tables ready for the first step:
#
# 1. *Wide loads.* A thread's four numbers lie side by side in both tables and in B: fetch each four at once, as a
#    `float4`, in the three lines that are marked. `*(float4*)&left[p][4 * ty]` is one. Count it before and after: where a
#    count stays as it was, the compiler had made the load wide already.
# 2. *Copies that run ahead.* Two pairs of tables: while the block computes with one, `cp.async` fills the
#    other, as in chapter 5. A's tile is transposed on its way, so it keeps plain loads. What will the
#    counts say, and what would a clock say?

# %%
source = r"""
extern "C" __global__
void product(const float* A, const float* B, float* C, int n)
{
    __shared__ __align__(16) float left[16][64], right[16][64];  // left is turned: left[p][row]
    int tx = threadIdx.x, ty = threadIdx.y, t = 16 * ty + tx;
    const float* a = A + (64 * blockIdx.y + t / 4) * n + 4 * (t % 4);
    const float* b = B + ty * n + 64 * blockIdx.x + 4 * tx;
    __align__(16) float sum[4][4] = {}, x[4], y[4], four[4];
    for (int start = 0; start < n; start += 16) {
        *(float4*)four = *(const float4*)(a + start);
        for (int i = 0; i < 4; i++) {
            left[4 * (t % 4) + i][t / 4] = four[i];
            right[ty][4 * tx + i] = b[start * n + i];  // one of four
        }
        __syncthreads();
        for (int p = 0; p < 16; p++) {
            for (int i = 0; i < 4; i++) x[i] = left[p][4 * ty + i];  // one of four
            for (int i = 0; i < 4; i++) y[i] = right[p][4 * tx + i];  // one of four
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&C[(64 * blockIdx.y + 4 * ty + i) * n + 64 * blockIdx.x + 4 * tx] = *(float4*)sum[i];
}
"""
wide = warplab.cuda_kernel(source, "product")

n = 256 if warplab.device().kind == "simt" else 2048
big = np.random.default_rng(0).standard_normal((3, n, n), np.float32)
climb("wide loads", wide[(n // 64, n // 64), (16, 16)], *big, n, note=...)

# %%
ahead = wide  # until you have written it
climb("copies that run ahead", ahead[(n // 64, n // 64), (16, 16)], *big, n, note=...)

# %% [markdown]
# ## 10. Predict and explain
#
# The table of your transpose has rows of 33 words. Suppose that somebody takes another width.
#
# 1. **Predict**, in the place of the `...`: how many wavefronts does a warp's load of a column take for rows of
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


def wavefronts(width):
    return warplab.profile(column_reader(width)[1, 32], np.zeros(32, np.float32)).shared_load.wavefronts


predict({32: ..., 33: ..., 34: ..., 40: ..., 48: ...}, wavefronts)

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
