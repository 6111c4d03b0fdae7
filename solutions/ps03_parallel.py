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
# # Problem set 3: Serial and parallel
#
# A weather station has noted the rain of every minute for years. What its keeper wants asks many numbers to
# become few, or to know their neighbours, so somebody has to wait. The art is to wait seldom.
#
# **About 4.5 hours** (estimated; the star about 1 more), after chapter 3. Of the 100 points 6 need a CUDA GPU. Write
# in the place of `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted.
# Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs
# the row. Tasks 6 and 7 are a *case*: somebody else's program fails. Find the cause with the course's tools, write a
# function that says what the broken program does, then mend the program.

# %%
import math

import numpy as np
from numba import cuda, float32, int32

import warplab
from warplab.check import grade, predict, puzzle, when_written

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# 5 % of a job stay serial. How many times as fast do 20 workers do it?

# %%
puzzle("ps03/limit", ...)

# %% [markdown]
# `total[0]` is 0, and the 32 lanes of a warp run `total[0] += 1`, once each. What stands there now?

# %%
puzzle("ps03/lost", ...)

# %% [markdown]
# In each round the lower half of the numbers adds what the upper half holds. How many rounds for 256 numbers?

# %%
puzzle("ps03/rounds", ...)

# %% [markdown]
# Lane i holds `value = i`. After `value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16)`, what does lane 20
# hold?

# %%
puzzle("ps03/lane", ...)

# %% [markdown]
# ## 1. What stays serial?
#
# The nightly report, run with different numbers of workers. The times are **made up**, some of them
# disturbed.

# %%
rng = np.random.default_rng(3)
workers = [1, 2, 4, 8, 16, 32]
seconds = 60 * (0.08 + 0.92 / np.array(workers))[:, None] * rng.uniform(0.97, 1.03, (6, 7))
seconds[rng.integers(0, 6, 6), rng.integers(0, 7, 6)] *= 3
for n, row in zip(workers, seconds, strict=True):
    print(f"{n:>2} workers: {' '.join(f'{t:6.1f}' for t in row)} s")

# %% [markdown]
# Amdahl's law says $t(n) = a + b/n$. That is a straight line, not in $n$ but in $1/n$. Take the median of
# each row, fit the line by least squares (`np.polyfit(x, y, 1)` returns its slope and its value at 0), and
# answer with the serial share $s = a/(a+b)$ and the limit $1/s$ of the speedup. For $t(n) = 3 + 57/n$ the
# share is 3/60 = 5 %, and the limit 20.
#
# Noise can make $s$ negative, or larger than 1. Keep it within 0 and 1. If nothing is serial, there is no limit:
# `math.inf`.


# %% solution="amdahl_fit"
def amdahl_fit(workers, seconds):
    """Return (serial share, limit of the speedup). About 4 lines.

    workers  list of n different whole numbers in any order, 2 or more of them
    seconds  float64 (n, samples)
    """
    ### BEGIN SOLUTION
    # A straight line in 1/n, so polyfit is the fit that was asked for. Usual slips: a fit against n; a / t[0], the first measurement,
    # for a / (a + b); two rows only; no clipping (a job that more workers slow down has a share above 1).
    b, a = np.polyfit(1 / np.array(workers), np.median(seconds, axis=1), 1)
    share = min(max(a / (a + b), 0.0), 1.0)
    return share, 1 / share if share else math.inf
    ### END SOLUTION


# %% grade="ps03/amdahl_fit"
grade("ps03/amdahl_fit", amdahl_fit)

# %%
with when_written():
    share, limit = amdahl_fit(workers, seconds)
    print(f"serial share {share:.1%}, so at most {limit:.1f} times as fast")

# %% [markdown]
# ## 2. The total, first try
#
# `total[0] += x[i]` reads, adds and writes, and meanwhile another thread does the same. Here 1,024 threads
# try:


# %%
@cuda.jit
def hurried(x, total):
    i = cuda.grid(1)
    if i < x.size:
        total[0] += x[i]


rain = rng.random(1000, dtype=np.float32)
total = np.zeros(1, np.float32)
hurried[4, 256](rain, total)
print(f"{total[0]:.2f} of {rain.sum():.2f}")

# %% [markdown]
# Hardly anything arrived. An *atomic* addition is all three steps at once.
#
# Use it to add up the rain that ran off. The ground takes in 0.25 mm in a minute, and only what falls beyond that
# runs into the valley: of 1.0 that is 0.75, of 0.2 nothing. Give each number a thread.


# %% solution="reduce_atomic"
@cuda.jit
def reduce_atomic(x, total):
    """Add to the total what one number has above 0.25. About 3 lines.

    x      float32 (n,), one thread for each and some to spare
    total  float32 (1,), 0 at the start
    """
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    # One request a warp, with 32 additions to one word in it: right, coalesced, and a queue that our counters do not show. Usual
    # slips: total[0] += x[i]; total[0] = cuda.atomic.add(...), which stores the OLD value; no bounds check.
    if i < x.size:
        cuda.atomic.add(total, 0, max(x[i] - float32(0.25), float32(0)))
    ### END SOLUTION


# %% grade="ps03/reduce_atomic"
grade("ps03/reduce_atomic", reduce_atomic)

# %% [markdown]
# ## 3. The total, as a tree
#
# Now all threads stand in one queue. Let those of a block add up among themselves first, this time all the rain. Your
# kernel gets any number of numbers and a grid that may be much smaller, so each thread adds up its share before the
# block meets at a table in shared memory. With eight threads:
#
# ```text
#   table      3  1  7  0  4  1  6  3
#   stride 4   7  2 13  3  .  .  .  .      place t adds place t + 4
#   stride 2  20  5  .  .                  place t adds place t + 2
#   stride 1  25  .                        place t adds place t + 1
# ```
#
# Between two rounds *all* threads must meet at `cuda.syncthreads()`, also those that have nothing left to do. At the
# end one thread of the block makes one atomic addition.


# %% solution="reduce_tree"
@cuda.jit
def reduce_tree(x, total):
    """Add one block's share to the total. About 14 lines. Blocks have 256 threads.

    x      float32 (n,), any n
    total  float32 (1,), 0 at the start

    1. Add up this thread's numbers with a grid-stride loop, and put the sum on the table.
    2. Strides 128, 64, ..., 1: the threads below the stride add; all meet.
    3. Thread 0 adds the block's sum to the total.
    """
    table = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    # Work first, then the tree: whatever a block's share, it makes 45 trips to the table and one atomic addition. Usual slips: a
    # return before the barriers, the barrier inside the `if`, neighbours first (150 trips), total[0] += table[0] at the end. One
    # warp that adds up for all passes every total; the busiest warp gives it away.
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    table[t] = mine
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        cuda.atomic.add(total, 0, table[0])
    ### END SOLUTION


# %% grade="ps03/reduce_tree"
grade("ps03/reduce_tree", reduce_tree)

# %% [markdown]
# On a CUDA GPU, full points up to three times a copy's time.

# %% grade="ps03/reduce_tree" rubric="time"
grade("ps03/reduce_tree", reduce_tree, rubric="time")

# %% [markdown]
# ## 4. Hand to hand
#
# How uneven was the rain? That takes the sum of the *squares*. Now the lanes of a warp exchange registers:
# `cuda.shfl_down_sync(mask, value, k)` gives lane i what lane i + k holds. With k = 16, 8, 4, 2 and 1, lane 0 has the
# sum of the warp at the end.
#
# Only the eight warps still need a table, once: nine trips to it where the tree made 45.


# %% solution="reduce_shuffle"
@cuda.jit(device=True)
def warp_sum(value):
    """The sum of `value` over a warp, in lane 0 at the end. All 32 lanes must call it. About 3 lines."""
    ### BEGIN SOLUTION
    for k in range(5):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16 >> k)
    return value
    ### END SOLUTION


@cuda.jit
def reduce_shuffle(x, total):
    """Add the squares of one block's share to the total. About 13 lines. Blocks have 256 threads.

    x      float32 (n,), any n
    total  float32 (1,), 0 at the start

    1. Add up the squares of this thread's numbers.
    2. Add up each warp; its lane 0 puts the sum on the table; all meet.
    3. The first warp adds up the eight sums (lanes from 8 on bring 0), and its lane 0 adds the result to the total.
    """
    table = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    # Eight stores and one load a block; warp_sum is called by whole warps only, and lanes from 8 on bring 0. Usual slips: four
    # steps instead of five, the table read before all have written, squares never or twice, lanes that read table[8] and beyond,
    # a serial loop over the eight sums, which costs eight loads for one and loses part of the row.
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i] * x[i]
    mine = warp_sum(mine)
    if t % 32 == 0:
        table[t // 32] = mine
    cuda.syncthreads()
    if t < 32:
        mine = warp_sum(table[t] if t < 8 else float32(0))
        if t == 0:
            cuda.atomic.add(total, 0, mine)
    ### END SOLUTION


# %% grade="ps03/reduce_shuffle"
grade("ps03/reduce_shuffle", reduce_shuffle)

# %% [markdown]
# Timed as the tree was. How much *time* do the saved trips save, if nearly all of it goes into reading?

# %% grade="ps03/reduce_shuffle" rubric="time"
grade("ps03/reduce_shuffle", reduce_shuffle, rubric="time")

# %% [markdown]
# The three kernels on 65,536 numbers, in 64 blocks (the first needs 256):

# %%
month = rng.random(65_536, dtype=np.float32)
for kernel, blocks in (reduce_atomic, 256), (reduce_tree, 64), (reduce_shuffle, 64):
    p = warplab.profile(kernel[blocks, 256], month, np.zeros(1, np.float32))
    shared = p.shared_load.requests + p.shared_store.requests
    print(
        f"{kernel.py_func.__name__:>14}: {p.atomics.requests:>5,} atomic requests, "
        f"{shared:>5,} shared, {p.warp_instructions:>6,} instructions issued"
    )

# %% [markdown]
# ## 5. A race to mend
#
# Warmth moves along a rod of 256 places, one thread for each: let every place become the mean of itself and
# its two neighbours, `rounds` times. The first and the last place have no neighbour on one side and count
# themselves twice.
#
# ```python
# for _ in range(rounds):
#     rod = [(rod[max(t - 1, 0)] + rod[t] + rod[min(t + 1, 255)]) / 3 for t in range(256)]
# ```
#
# A colleague's kernel is stopped by the engine:


# %%
@cuda.jit
def racing(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    rod[t] = x[i]
    for _ in range(rounds):
        rod[t] = (rod[left] + rod[t] + rod[right]) / float32(3)
    out[i] = rod[t]


ground = (20 * rng.random(256)).astype(np.float32)
try:
    racing[1, 256](ground, 4, np.zeros_like(ground))
except warplab.LaunchError as error:
    print(error)

# %% [markdown]
# Mend it. One barrier in a round prevents only one of two mistakes: somebody reads a neighbour's place before
# the neighbour has written it, or somebody writes a place that a neighbour still wants to read.


# %% solution="fix_the_race"
@cuda.jit
def fix_the_race(x, rounds, out):
    """`rounds` times: one place becomes the mean of itself and its neighbours. About 9 lines. Blocks have 256 threads.

    x, out  float32 (rods * 256,), a block for each rod
    rounds  0 or more
    """
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    ### BEGIN SOLUTION
    # Read, meet, write, meet; the mean waits in a register in between. Usual slips: one barrier a round, syncwarp (the neighbour
    # may sit in another warp), a barrier inside `if 0 < t < 255`, ends that wrap. Two tables, read from one and write to the
    # other, need one meeting a round: an answer of the corpus does that.
    rod[t] = x[i]
    cuda.syncthreads()
    for _ in range(rounds):
        mean = (rod[left] + rod[t] + rod[right]) / float32(3)
        cuda.syncthreads()
        rod[t] = mean
        cuda.syncthreads()
    out[i] = rod[t]
    ### END SOLUTION


# %% grade="ps03/fix_the_race"
grade("ps03/fix_the_race", fix_the_race)

# %% [markdown]
# ## 6. A case: the rain that got lost
#
# A dam lies below the station, and its gates are opened by the rain of each hour. The program below was meant to add up
# intervals of any length, a block for each interval and a thread for each minute, so that the gates are open before
# the water comes.
#
# Its author tried it on intervals of 64 minutes, and the sums were right. The keeper of the dam writes: "With
# hours of 60 minutes every sum is too small. In a steady rain of 1 mm a minute it says 32 mm an hour. And this
# morning, in the middle of an hour, it stopped." Here is the program, in a steady rain:


# %%
@cuda.jit
def hours_given(x, out):
    table = cuda.shared.array(1024, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < x.size:
        table[t] = x[i]
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            table[t] += table[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = table[0]


steady = np.ones(192, np.float32)
for minutes, count in (64, 192), (60, 180), (64, 150):
    sums = np.zeros(3, np.float32)
    try:
        hours_given[3, minutes](steady[:count], sums)
        print(f"{count} minutes, {minutes} an interval: {sums}")
    except warplab.LaunchError as error:
        print(f"{count} minutes, {minutes} an interval: {error}")

# %% [markdown]
# An x that is zero except in one place shows whether that minute reaches the sum. Before you mend the program,
# write which minutes of an interval it loses.


# %% solution="hours_cause"
def hours_cause(minutes):
    """Return the minutes of a full interval that hours_given leaves out, a rising list. About 7 lines.

    minutes  of an interval, 1 to 1,024; the first has the number 0
    """
    ### BEGIN SOLUTION
    # Half of 15 is 7: the places 0 to 6 add 7 to 13, and place 14, with all that it holds by then, is never read again. What is left
    # in the end are as many minutes as the largest power of two has, 32 of 60. Usual slips: only the first odd round looked at; the
    # place that is left behind, without the minutes that it has added up before.
    held = [[minute] for minute in range(minutes)]
    half = minutes // 2
    while half > 0:
        for t in range(half):
            held[t] += held[t + half]
        half //= 2
    return [minute for minute in range(minutes) if minute not in held[0]]
    ### END SOLUTION


# %% grade="ps03/hours_cause"
grade("ps03/hours_cause", hours_cause)

# %%
with when_written():
    print("of an hour:", hours_cause(60))

# %% [markdown]
# ## 7. The rain, mended
#
# Mend the program for intervals of any length, and for a last one that is not over: the minutes that are still to come
# count as 0.


# %% solution="hours"
@cuda.jit
def hours(x, out):
    """Write the sum of one block's numbers to out[cuda.blockIdx.x]. About 14 lines.

    x    float32 (n,), a thread for each number; the last block may have some to spare
    out  float32 (blocks,)

    Blocks have 1 to 1,024 threads. The threads of a block add up together, as a tree.
    """
    table = cuda.shared.array(1024, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    ### BEGIN SOLUTION
    # Shared memory holds whatever was left there: each thread puts something down, 0 where it has no number. Halves are rounded up,
    # and the place in the middle of an odd count waits for the next round. Usual slips: halves rounded up and no test of
    # t + middle against what is left, so that places are added that lie behind it; a loop `while half > 0`, which never ends at 1.
    table[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    left = cuda.blockDim.x
    while left > 1:
        middle = (left + 1) // 2
        if t + middle < left:
            table[t] += table[t + middle]
        cuda.syncthreads()
        left = middle
    if t == 0:
        out[cuda.blockIdx.x] = table[0]
    ### END SOLUTION


# %% grade="ps03/hours"
grade("ps03/hours", hours)

# %% [markdown]
# ## 8. Running totals *
#
# How much rain had fallen by each minute? `out[i] = x[0] + ... + x[i]`, and no number need wait for all
# before it:
#
# ```text
#   x                     4 1 0 2 | 3 3 1 0 | 2 0 5 1      three blocks
#   each block alone      4 5 5 7 | 3 6 7 7 | 2 2 7 8
#   the blocks' totals    7         7         8
#   scanned               7        14        22
#   added to the next     4 5 5 7 |10 13 14 14|16 16 21 22
# ```
#
# The blocks of one launch have no barrier in common, so this takes several launches, and you write the host code that
# makes them. Its arrays live on a `device`. Their values stay there too; on the host they have only a `shape`, a
# `size` and a `dtype`. `device.launch` stands for the square brackets:
#
# ```python
# totals = device.empty(shape, "int32")                # a new array, its contents undefined
# device.launch(kernel, grid, block, totals, x, 3)     # arrays and numbers
# ```
#
# Scanning the totals is the same problem, only smaller. Your function may call itself.


# %% solution="scan"
@cuda.jit
def scan_blocks(x, out, totals):
    """Running totals inside one block of 256 threads, and the block's total into totals[blockIdx.x]. About 15 lines.

    In round k, each place from 2**k on adds what lies 2**k places before it: read, meet, write, meet.
    """
    ### BEGIN SOLUTION
    table = cuda.shared.array(256, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    table[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    reach = 1
    while reach < 256:
        before = table[t - reach] if t >= reach else 0
        cuda.syncthreads()
        table[t] += before
        cuda.syncthreads()
        reach *= 2
    if i < x.size:
        out[i] = table[t]
    if t == 255:
        totals[cuda.blockIdx.x] = table[t]
    ### END SOLUTION


@cuda.jit
def add_before(out, totals):
    """Add to one number the total of all blocks before its own; `totals` are scanned already. About 3 lines."""
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if cuda.blockIdx.x > 0 and i < out.size:
        out[i] += totals[cuda.blockIdx.x - 1]
    ### END SOLUTION


def scan(device, x, out):
    """Fill `out` with the running totals of `x`. About 6 lines.

    x, out  int32 (n,), any n from 1 on

    1. Scan each block of 256, and keep the blocks' totals.
    2. Scan the totals.
    3. Add to every number the total of all blocks before its own.
    The two kernels are a suggestion; write others if you like.
    """
    ### BEGIN SOLUTION
    # The totals are scanned by the same function, and each number passes through global memory twice: 4 n / 8 sectors. Usual
    # slips: the total of one block before, not of all; the totals scanned by a single block, right up to 65,536 numbers; places
    # past the end left unset on the table, or their threads sent home before a barrier.
    blocks = -(-x.size // 256)
    totals = device.empty(blocks, "int32")
    device.launch(scan_blocks, blocks, 256, x, out, totals)
    if blocks > 1:
        before = device.empty(blocks, "int32")
        scan(device, totals, before)
        device.launch(add_before, blocks, 256, out, before)
    ### END SOLUTION


# %% grade="ps03/scan"
grade("ps03/scan", scan)

# %% [markdown]
# On a CUDA GPU, full points up to twelve times one copy's time, for all launches together.

# %% grade="ps03/scan" rubric="time"
grade("ps03/scan", scan, rubric="time")

# %% [markdown]
# ## 9. Predict and explain
#
# `reduce_atomic` gets 65,536 numbers of 0.35, so that it adds 0.1 each time, and `reduce_tree` as many of 0.1.
# In float32 neither gets 6,553.6 exactly.
#
# 1. **Predict** how far off each is, in the place of the `...`; the sums come when both are said. (Near 6,000,
#    neighbouring float32 numbers are 0.0005 apart.)
# 2. **Explain** the difference.
# 3. Which of them could give ten different results in ten runs on a GPU, and why?
#
# About 150 words.

# %%
launches = {"reduce_atomic": reduce_atomic[256, 256], "reduce_tree": reduce_tree[64, 256]}
above = {"reduce_atomic": 0.25, "reduce_tree": 0.0}  # what a kernel takes off each number before it adds


def off_by(name):
    numbers, total = np.full(65_536, 0.1 + above[name], np.float32), np.zeros(1, np.float32)
    launches[name](numbers, total)
    return abs(total[0] - (numbers - np.float32(above[name])).sum(dtype=np.float64))


predict({"reduce_atomic": ..., "reduce_tree": ...}, off_by, found="off by")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** On the engine, the atomic kernel is off by 4.05 and the tree by 0.004, a thousand times less.
#
# With atomics every number is added to the total, which soon is thousands of times larger. A sum near 6,000 is rounded to a
# multiple of 0.0005, so each of the last additions of 0.1 is wrong by up to 0.00025, and because the summand is always the
# same, the roundings of a stretch all go the same way and add up. In the tree a thread adds four numbers, then sums of
# similar size meet: few additions lie between a number and the result (4 + 8 + 64 instead of up to 65,536), and only
# the last 64, of whole blocks, work at the large size.
#
# Different results in ten runs are possible for both: the atomic additions of the threads, and of the blocks in the tree,
# happen in an order that nobody promises, and a sum of floating-point numbers depends on the order. The tree has 64 such
# additions instead of 65,536. (With equal summands, as here, the order of the *atomic* kernel cannot matter: each step adds
# 0.1 to the same sequence of totals. An answer that sees this is a very good one.)
#
# **Marking.** 1 point: the prediction, or the wrong one corrected. 2 points: rounding at the size of the running total, small
# summand against large sum. 1 point: the tree has short chains of summands of similar size. 1 point: order of atomics is
# not fixed, and float addition depends on it.
# ### END SOLUTION
