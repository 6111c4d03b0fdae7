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
# # Problem set 14: Audit the machine's kernels
#
# A hospital reconstructs images of the heart. A language model has written six kernels for it, each with a
# friendly comment and a test that passes. You sign for what goes into the scanner.
#
# **About 3 hours** (estimated), without a GPU, after chapter 13, whose section "Before you believe a kernel" tells what
# others met. Write in the place of `raise NotImplementedError()` and delete that line; `help(grade)` says
# how points are counted. Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay
# as they are: a changed one costs the row.

# %%
import numpy as np
from numba import cuda, float32

import warplab
from warplab.check import grade, needs, predict, puzzle

needs("cuda")  # what the sets before could do without

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# A model reports that its kernel adds two vectors of $2^{24}$ float32 numbers in 40 µs on an H100 SXM. How many
# microseconds must it take at least, if the vectors lie in its memory (3.35 TB/s)?

# %%
puzzle("ps14/bound", ...)

# %% [markdown]
# A kernel keeps its last result and computes again only if the sum of its numbers has changed. Two different
# numbers change places. "yes" or "no": does it compute again?

# %%
puzzle("ps14/places", ...)

# %% [markdown]
# How far apart are two neighbouring float32 numbers just above 1,000,000?

# %%
puzzle("ps14/spacing", ...)

# %% [markdown]
# A kernel with blocks of 64 threads sums a row in steps of 64 columns, and leaves out a last step that is not
# full. Its author tests rows of 64, 128, 256, 512 and 1,024 columns. How many of these tests fail?

# %%
puzzle("ps14/powers", ...)

# %% [markdown]
# ## What an audit is
#
# Each task shows a job, its limits and a kernel. You write one function, which returns
#
# - a **verdict**, one of the names below;
# - the **worst case**, a number that the task asks for;
# - a **witness**: arrays for the kernel, made by a few lines of NumPy.
#
# The judge gives your witness to three kinds of kernels: the one that is shown, others that are wrong in a similar way,
# and right ones in another style. It runs them on the course's engine with its sanitizer, and compares with
# float64. A witness **breaks** a kernel if a number comes out wrong, or if the sanitizer finds that it reads past
# the end of an array or that its threads race. Else the kernel **comes through**; the table of a check says which other
# kernel did. Points need a witness that breaks the shown kernel, whatever else is right. If you find that a shown kernel
# is right, its task says what to break instead. A witness outside the job's limits proves nothing and gets no points;
# "no number beyond 1,000" means from -1,000 to 1,000.
#
# | verdict | what it says |
# |---|---|
# | `RIGHT` | right within the job's limits |
# | `SLOWER` | right, and it moves at least twice the sectors of the plain kernel |
# | `SIZES` | wrong at some sizes, whatever the numbers are |
# | `BOUNDS` | reads past the end of an array, whatever comes out |
# | `RACE` | its threads race |
# | `SKIPS` | leaves out a part of the work for some contents, even in a first call |
# | `REMEMBERS` | right in a first call; a later call may give old results again |
# | `PRECISION` | loses the digits that the job asks for |
#
# `threads` is the number of threads in a block: 64, 128 or 256. Launch the kernels as you like while you look
# for a witness: without a GPU a read past the end and a race in shared memory stop them with a message.

# %%
RIGHT, SLOWER, SIZES, BOUNDS, RACE, SKIPS, REMEMBERS, PRECISION = range(8)

# %% [markdown]
# ## 1. The sum of each row
#
# The scanner adds up what each detector has seen. **Job:** `out[row]` is the sum of row `row` of `x`, float32. One
# block of `threads` threads works on each row. **Limits:** 1 to 8 rows, 1 to 6 * `threads` columns, no number
# beyond 1,000.


# %%
@cuda.jit
def row_sums(x, out):
    """Highly optimized row-wise sum: one block per row, fully coalesced loads.

    Four independent accumulators per thread hide the memory latency, and a tree in
    shared memory combines the partial sums. Works for arbitrary row lengths.
    """
    cache = cuda.shared.array(256, float32)
    tx, row = cuda.threadIdx.x, cuda.blockIdx.x
    threads, cols = cuda.blockDim.x, x.shape[1]
    s0 = s1 = s2 = s3 = float32(0)
    # Main loop: four coalesced loads in flight per iteration.
    col = tx
    while col + 3 * threads < cols:
        s0 += x[row, col]
        s1 += x[row, col + threads]
        s2 += x[row, col + 2 * threads]
        s3 += x[row, col + 3 * threads]
        col += 4 * threads
    # Handle the remaining columns.
    if col < cols:
        s0 += x[row, col]
    # Tree reduction in shared memory.
    cache[tx] = (s0 + s1) + (s2 + s3)
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if tx < half:
            cache[tx] += cache[tx + half]
        cuda.syncthreads()
        half //= 2
    if tx == 0:
        out[row] = cache[0]


x = np.ones((3, 256), np.float32)
sums = np.zeros(3, np.float32)
row_sums[3, 64](x, sums)
print(sums)


# %% solution="row_sums"
def audit_row_sums(threads):
    """Return (verdict, worst, x). About 3 lines.

    verdict  one of the names in the table
    worst    the most columns that the kernel leaves out of one row, over all numbers of columns
    x        the witness, float32
    """
    ### BEGIN SOLUTION
    x = np.ones((3, 3 * threads + 1), np.float32)
    return SIZES, 2 * threads, x
    # Behind the last four full steps a thread may have three numbers left, and takes one. With 3 * threads columns each
    # thread loses two: 2 * threads, the most. Any power of two from 4 * threads on has nothing left, which is
    # why the author's tests pass. An odd number of rows and a column beyond the steps break the others, too. Usual slips: sizes
    # below `threads`, where one step is enough; zeros, which nobody misses.
    ### END SOLUTION


# %% grade="ps14/row_sums"
grade("ps14/row_sums", audit_row_sums)

# %% [markdown]
# ## 2. Brightening
#
# What is brighter than the screen is shown white. **Job:** `out[i]` is the smaller of 1 and 1.5 * `x[i]`, float32. A block works on four tiles of `threads` numbers,
# one after the other. **Limits:** 1 to 6 * `threads` numbers, none beyond 1,000.


# %%
@cuda.jit
def brighten(x, out):
    """Brightness with saturation: out = min(1, 1.5 * x). Each block processes four tiles.

    Software pipelining: while one tile is processed the next one is already on its way, so
    that memory latency is completely hidden. All accesses are coalesced and bounds-checked.
    """
    threads, n = cuda.blockDim.x, x.shape[0]
    start = 4 * threads * cuda.blockIdx.x
    i = start + cuda.threadIdx.x
    # Prologue: load the first tile.
    current = x[i] if i < n else float32(0)
    for tile in range(4):
        # Prefetch the next tile; there is nothing to load behind the last one.
        following = float32(0)
        if tile < 3 and start + (tile + 1) * threads < n:
            following = x[i + threads]
        # Process the current tile.
        if i < n:
            out[i] = min(float32(1), float32(1.5) * current)
        current = following
        i += threads


x = np.linspace(0, 1, 512, dtype=np.float32)
bright = np.zeros_like(x)
brighten[2, 64](x, bright)
print(np.abs(bright - np.minimum(1, 1.5 * x)).max())


# %% solution="brighten"
def audit_brighten(threads):
    """Return (verdict, worst, x). About 3 lines.

    verdict  one of the names in the table
    worst    the most numbers past the end of `x` that one launch reads; 0 if it reads none
    x        the witness, float32
    """
    ### BEGIN SOLUTION
    x = np.linspace(0, 1, 3 * threads + 1, dtype=np.float32)
    return BOUNDS, threads - 1, x
    # The load ahead asks whether the next tile begins inside, for the whole block. If that tile is not full, the threads
    # past the end load as well: all but one of them with one number left. No result shows it, since what they loaded is
    # not used; on a GPU the word behind the array usually belongs to the same page, and the sanitizer alone complains. The
    # unfinished tile must not be the first of its block: n = 4 * threads + 1 is a usual slip. An odd size that four does not
    # divide breaks those that load two numbers at once.
    ### END SOLUTION


# %% grade="ps14/brighten"
grade("ps14/brighten", audit_brighten)

# %% [markdown]
# ## 3. Rows less their means
#
# Each detector has an offset of its own, which is taken off. **Job:** `out` is `x` less the mean of each row, float32. `blocks` blocks (2, 4 or 8) share the rows. **Limits:** 1
# to 4 * `blocks` rows, 1 to 512 columns, no number beyond 1,000.


# %%
@cuda.jit
def centre(x, out):
    """Subtract from each row its mean. Persistent blocks: each one loops over the rows.

    Launching few blocks and keeping them busy amortizes the launch overhead. Barriers are
    placed exactly where they are needed, one after each step of the reduction.
    """
    cache = cuda.shared.array(256, float32)
    tx, threads = cuda.threadIdx.x, cuda.blockDim.x
    rows, cols = x.shape
    row = cuda.blockIdx.x
    while row < rows:
        total = float32(0)
        for col in range(tx, cols, threads):
            total += x[row, col]
        cache[tx] = total
        cuda.syncthreads()
        half = threads // 2
        while half > 0:
            if tx < half:
                cache[tx] += cache[tx + half]
            cuda.syncthreads()
            half //= 2
        mean = cache[0] / float32(cols)
        for col in range(tx, cols, threads):
            out[row, col] = x[row, col] - mean
        row += cuda.gridDim.x


x = np.random.default_rng(0).normal(size=(4, 200)).astype(np.float32)
rest = np.zeros_like(x)
centre[4, 64](x, rest)
print(np.abs(rest - (x - x.mean(axis=1, keepdims=True))).max())


# %% solution="centre"
def audit_centre(blocks, threads):
    """Return (verdict, worst, x). About 3 lines.

    verdict  one of the names in the table
    worst    of 100 rows that `blocks` blocks share, how many may come out wrong on a GPU, at most
    x        the witness, float32
    """
    ### BEGIN SOLUTION
    x = np.arange(40 * (blocks + 1), dtype=np.float32).reshape(blocks + 1, 40)
    return RACE, 100 - blocks, x
    # Everything is ordered within a row. But a block that has a second row begins it at once: a fast warp writes cache[0]
    # while a slow one has still to read the first row's sum there. So it takes more rows than blocks. Each row may be
    # hit but the last one of each block. The engine's numbers are right, since its warps go in step; only the sanitizer sees
    # it. Usual slips: as many rows as blocks; 100 - 1, as if there were one block.
    ### END SOLUTION


# %% grade="ps14/centre"
grade("ps14/centre", audit_centre)

# %% [markdown]
# ## 4. Variances in one pass
#
# A detector that is too noisy is left out, so the scanner needs variances. **Job:** `out[row]` is the variance of row `row` of `x` (divided by the number of columns), right to 2 %. **Limits:** 1
# to 8 rows, 2 to 4 * `threads` columns, no number beyond 1,000; in each row the number that is farthest from 0 is at most
# 2,000 times the row's standard deviation. One block works on each row.
#
# Four other kernels for this job are wrong:
#
# - the first takes the mean of a row's first `threads` columns for the mean of the row;
# - the second subtracts the square of the mean from the mean of the squares;
# - the third subtracts `x[0, 0]` from all numbers of `x`, and goes on like the second;
# - the fourth keeps the upper 16 bits of each number.
#
# Make a witness that breaks all four, whatever your verdict on the shown kernel is. A witness that spares the first gets
# no points.


# %%
@cuda.jit
def variance(x, out):
    """Variance of each row in a single pass over memory (Welford), one block per row.

    A single pass halves the memory traffic of the classical two-pass formula. Partial
    results (count, mean, m2) of the threads are merged pairwise in shared memory.
    """
    counts = cuda.shared.array(256, float32)
    means = cuda.shared.array(256, float32)
    m2s = cuda.shared.array(256, float32)
    tx, row, threads = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockDim.x
    count, mean, m2 = float32(0), float32(0), float32(0)
    for col in range(tx, x.shape[1], threads):
        count += float32(1)
        delta = x[row, col] - mean
        mean += delta / count
        m2 += delta * (x[row, col] - mean)
    counts[tx] = count
    means[tx] = mean
    m2s[tx] = m2
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if tx < half and counts[tx + half] > 0:
            # Merge two groups (Chan et al.); the first one may be larger.
            n = counts[tx] + counts[tx + half]
            delta = means[tx + half] - means[tx]
            means[tx] += delta * counts[tx + half] / n
            m2s[tx] += m2s[tx + half] + delta * delta * counts[tx] * counts[tx + half] / n
            counts[tx] = n
        cuda.syncthreads()
        half //= 2
    if tx == 0:
        out[row] = m2s[0] / counts[0]


x = np.random.default_rng(0).normal(size=(2, 512)).astype(np.float32)
found = np.zeros(2, np.float32)
variance[2, 64](x, found)
print(found, x.var(axis=1))


# %% solution="variance"
def audit_variance(threads):
    """Return (verdict, x). About 5 lines.

    verdict  one of the names in the table
    x        the witness, float32
    """
    ### BEGIN SOLUTION
    row, col = np.ogrid[:8, : 2 * threads]
    x = (900 + row) * (-1.0) ** row
    x = x + np.where(col < threads, -0.5, 0.5) + 0.1 * np.sin(col * (row + 1))
    return RIGHT, x.astype(np.float32)
    # Welford's update and Chan's merging are right, also where a thread has no column. What is suspicious, one pass and a
    # division in each step, is what keeps the digits. With a mean of 900 and a spread of 0.5 the squares are near 810,000,
    # where float32 numbers are 0.06 apart, a quarter of the variance; rows with means of both signs break the one that shifts by x[0, 0];
    # 16 bits keep 8 binary digits; a step after `threads` columns breaks the sampled mean. Usual slips: a single row, which a lucky rounding
    # may spare; a mean so large that the limit of 2,000 deviations is broken.
    ### END SOLUTION


# %% grade="ps14/variance"
grade("ps14/variance", audit_variance)

# %% [markdown]
# ## 5. A smooth step
#
# Two images meet at a seam and are blended smoothly. **Job:** `out[i]` is `x[i] * x[i] * (3 - 2 * x[i])`, float32, launched with four blocks. **Limits:** 1 to 30 * `threads` numbers, none
# beyond 1. The plain kernel gives neighbouring threads neighbouring numbers, in a grid-stride loop. In this task
# a witness also breaks a kernel if that moves, reads and writes together, at least twice as many sectors as the plain one.


# %%
@cuda.jit
def smooth(x, out):
    """Smoothstep, out = x * x * (3 - 2 * x), with a cache-friendly work distribution.

    Every thread owns one contiguous chunk of the array. This maximizes spatial locality:
    each cache line is used completely by a single thread before the next one is touched.
    """
    thread = cuda.grid(1)
    threads = cuda.gridsize(1)
    n = x.shape[0]
    # Size of a chunk, rounded up so that nothing is left over.
    chunk = (n + threads - 1) // threads
    start = thread * chunk
    for i in range(start, min(start + chunk, n)):
        v = x[i]
        out[i] = v * v * (float32(3) - float32(2) * v)


x = np.linspace(0, 1, 2048, dtype=np.float32)
y = np.zeros_like(x)
p = warplab.profile(smooth[4, 64], x, y)
print(np.abs(y - x * x * (3 - 2 * x)).max(), p.global_load.sectors, "sectors read")


# %% solution="smooth"
def audit_smooth(threads):
    """Return (verdict, worst, x). About 3 lines.

    verdict  one of the names in the table
    worst    the smallest n at which the first read of the first warp touches 32 sectors, with four blocks
    x        the witness, float32
    """
    ### BEGIN SOLUTION
    x = np.linspace(0, 1, 8 * threads, dtype=np.float32)
    return SLOWER, 28 * threads + 1, x
    # One chunk per thread suits a CPU core's cache, but breaks a warp's coalescing: lanes are a chunk apart. Every number is right. With n up
    # to 4 * threads a chunk is one number and nothing is lost, so a small test does not show it. 32 lanes touch 32 sectors
    # from a chunk of eight numbers on, which takes more than 7 * 4 * threads. Usual slips: one of the wrong verdicts, because
    # there must be something wrong; n = 30 * threads for the worst case, where the chunk is eight as well.
    ### END SOLUTION


# %% grade="ps14/smooth"
grade("ps14/smooth", audit_smooth)

# %% [markdown]
# ## 6. Energies, call after call
#
# The heart is watched live, pulse after pulse. **Job:** `out[i]` is `x[i] * x[i]`, float32. A block works on `threads` numbers. `kept` has room for as many numbers as
# `x`, is full of NaN before the first call, and belongs to the kernel. The scanner calls it again and again with the same arrays, whose contents
# change. **Limits:** 4 * `threads` to 16 * `threads` numbers, none beyond 1,000.
#
# The judge calls it with `first` in `x`, puts `second` into the same `x` and calls it again. Both results must be right.


# %%
@cuda.jit
def energy(x, out, kept):
    """Energy of a signal, out = x * x, with incremental recomputation: up to 10x faster.

    In real workloads most of the input stays the same between two calls. Each block keeps a
    fingerprint of its tile in `kept` and returns early when the tile has not changed.
    """
    tx, block, threads = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockDim.x
    first = block * threads
    last = min(first + threads, x.shape[0]) - 1
    # Fingerprint: first, middle and last number of the tile, with different weights.
    fingerprint = x[first] + float32(3) * x[(first + last) // 2] + float32(7) * x[last]
    if kept[block] == fingerprint:
        return  # `out` is already up to date.
    cuda.syncthreads()
    if first + tx <= last:
        out[first + tx] = x[first + tx] * x[first + tx]
    if tx == 0:
        kept[block] = fingerprint


signal = np.arange(256, dtype=np.float32)
y, kept = np.zeros_like(signal), np.full_like(signal, np.nan)
for x in signal, 2 * signal:
    energy[4, 64](x, y, kept)
    print(np.abs(y - x * x).max())


# %% solution="energy"
def audit_energy(threads):
    """Return (verdict, worst, first, second). About 4 lines.

    verdict        one of the names in the table
    worst          of 4 * threads numbers, how many of the second result may be left from the first call, at most
    first, second  the witness, float32, of the same size
    """
    ### BEGIN SOLUTION
    first = (np.arange(5 * threads) % 50 + 1).astype(np.float32)
    second = first.copy()
    second[[40, 41]] = first[[41, 40]]
    return REMEMBERS, 4 * threads, first, second
    # A fingerprint smaller than its tile is the same for many different tiles. Three numbers of a tile decide, so any change
    # between them goes unseen; and as they are added up, they may change, too, while their sum stays: all 4 * threads results may be
    # old. Two numbers that change places, past the first 32, keep sums, sums of squares and beginnings of a tile as they were: one witness
    # for the whole kind. Usual slips: 3 less in each tile; a change at the first number, which this fingerprint sees.
    ### END SOLUTION


# %% grade="ps14/energy"
grade("ps14/energy", audit_energy)

# %% [markdown]
# ## Predict, then count
#
# **Guess first.** The kernel of task 1 runs with blocks of 64 threads, on rows of ones. Up to 1,024 there are 32 numbers of
# columns that are multiples of 32, 16 multiples of 64 and 4 of 256. At how many of each is it wrong? Write your guesses in the place of `...`, then run the cell.
#
# **Then explain.** What do your six witnesses have that the tests under the kernels lack? Tomorrow you get a kernel that a model
# wrote, and have one hour: what do you run, in which order, and what fault would still come through? About 150 words.


# %%
def wrong_sizes(multiple):
    """At how many numbers of columns up to 1,024, multiples of this one, a sum of ones is wrong."""
    wrong = 0
    for cols in range(multiple, 1025, multiple):
        sums = np.zeros(1, np.float32)
        row_sums[1, 64](np.ones((1, cols), np.float32), sums)
        wrong += int(sums[0] != cols)
    return wrong


predict({32: ..., 64: ..., 256: ...}, wrong_sizes, found="sizes wrong")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** 20, 8 and 0. What is left behind full steps of 256 columns must be at most 64: multiples of 256 never show it, and those
# are what people test.
#
# The tests were of one size, a power of two, with harmless numbers, in one call, and looked at the result alone. The witnesses
# are odd, larger than one tile, one row more than there are blocks; they have a large mean, a step, two numbers that change places;
# they are judged by a sanitizer and by counted sectors as well.
#
# In an hour: first the bound, bytes over bandwidth, since a time below it ends the matter. Then the sanitizer over sizes 1, one less,
# equal and one more than a tile and a launch. Then contents: large mean, equal numbers, zeros among others, against float64 with a tolerance from the
# format. Then twice with the buffer changed in between, its output filled with NaN first. Counters last, beside a plain kernel. What
# still comes through: a fault at one size that I did not draw, and a race that needs a machine with another order.
#
# **Marking.** 1 point: prediction or its correction. 2 points: what the witnesses have in common. 1 point: an order with a reason. 1 point:
# something that would still come through.
# ### END SOLUTION
