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
# # Problem set 0: Warm-ups
#
# Twelve kernels of one to three lines, with one new idea each, before problem set 1. **About an hour** (estimated;
# up to two if NumPy's arrays are new to you). All you need is Python. Each is worth one point, and none of them
# counts unless your instructor says so.
#
# A warm-up has three cells. The first draws what is asked, **before you write a line**: threads are circles with
# their number, arrays are rows of boxes, and the faint numbers are what belongs in the boxes of `out`. In the second
# you write in the place of `raise NotImplementedError()`, and delete that line. The third runs your kernel, draws
# what *your* threads did, and checks it, with other numbers and sizes too. Each check is a row of the table below the
# cell. Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one
# costs the row. Blue lines are reads, green lines are writes, and orange marks what is wrong.
#
# A right answer opens the next warm-up. If you are stuck, put `grade("ps00/number", "show me")`, with the name
# of the warm-up, into a cell of your own: it shows an answer and opens the next as well. After a restart run all
# cells from the top: what is right opens again.

# %%
from numba import cuda, float32
from warplab.check import grade

# %% [markdown]
# ## 1. A thread writes its number
#
# A *kernel* is a function that many workers run at once, and the line `@cuda.jit` above a function makes it one.
# Starting a kernel is called **launching** it; here the third cell does that. One of these workers is a **thread**.
# At first threads differ only in their number: eight threads have the numbers 0 to 7, and each finds its own in
# `cuda.threadIdx.x`. A kernel returns nothing; it writes into an array that it is given.
#
# Let every thread write its number at the place of that number.

# %%
grade("ps00/number", ...)


# %% solution="number"
@cuda.jit
def number(out):
    """out[t] becomes t. 1 line."""
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    out[t] = t
    ### END SOLUTION


# %% grade="ps00/number"
grade("ps00/number", number)

# %% [markdown]
# ## 2. Two threads, one element each
#
# Arrays lie in the GPU's **global memory**, which is large and far from the threads. What a thread has read, or
# computed, it keeps in a **register**, a place of its own that no other thread can see: after `mine = x[t]` the
# local variable `mine` lives in one.
#
# Each thread reads its number of `x` and writes twice that number.

# %%
grade("ps00/double", ...)


# %% solution="double"
@cuda.jit
def double(x, out):
    """out[t] becomes twice x[t]. 2 lines, or 1."""
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    mine = x[t]
    out[t] = 2 * mine
    ### END SOLUTION


# %% grade="ps00/double"
grade("ps00/double", double)

# %% [markdown]
# ## 3. More threads than numbers
#
# Threads come in round numbers and data does not. Here eight threads meet five numbers, and the last three must
# neither read nor write: there is nothing of theirs at `x[5]`, and Python's friendly IndexError does not exist
# on a GPU. The check finds such a step, and names a thread by three numbers, x, y and z: thread 5 of block 0 is
# `thread (5, 0, 0) of block (0, 0, 0)`, and `cell:5` is line 5 of your cell. `x.size` is how many numbers there are.
#
# Each thread that has a number writes that number plus 1.

# %%
grade("ps00/bounds", ...)


# %% solution="bounds"
@cuda.jit
def bounds(x, out):
    """out[t] becomes x[t] + 1, where there is an x[t]. 2 lines."""
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    if t < x.size:
        out[t] = x[t] + 1
    ### END SOLUTION


# %% grade="ps00/bounds"
grade("ps00/bounds", bounds)

# %% [markdown]
# ## 4. Rows and columns
#
# For a picture or a matrix threads can be numbered in two directions. **x is the column and y is the row**: x
# comes first in every launch, and the row comes first in every index, `out[row, col]`. In the drawing the rows
# stand side by side, as they do in memory, and a circle shows its thread's x alone: there are three threads 0, one
# in each row.
#
# The thread in row 2 and column 3 writes 23, and every other thread likewise.

# %%
grade("ps00/plane", ...)


# %% solution="plane"
@cuda.jit
def plane(out):
    """out[row, col] becomes 10 * row + col. 1 line."""
    col = cuda.threadIdx.x
    row = cuda.threadIdx.y
    ### BEGIN SOLUTION
    out[row, col] = 10 * row + col
    ### END SOLUTION


# %% grade="ps00/plane"
grade("ps00/plane", plane)

# %% [markdown]
# ## 5. Blocks
#
# Threads are launched in **blocks**: 12 threads may be 3 blocks of 4, each in a frame of its own in the drawing,
# and all blocks together are the **grid**.
# In every block `cuda.threadIdx.x` begins at 0 again. `cuda.blockIdx.x` is the number of the block, and
# `cuda.blockDim.x` says how many threads a block has.
#
# First work out `i`, the thread's number among all threads of the grid, from these three. Then write the number
# of the block at place `i`.

# %%
grade("ps00/blocks", ...)


# %% solution="blocks"
@cuda.jit
def blocks(out):
    """out[i] becomes the number of the block that thread i is in. 2 lines."""
    ### BEGIN SOLUTION
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    out[i] = cuda.blockIdx.x
    ### END SOLUTION


# %% grade="ps00/blocks"
grade("ps00/blocks", blocks)

# %% [markdown]
# ## 6. More numbers than threads
#
# Eight threads, 20 numbers: every thread does several. It begins at its own number and goes on in steps of the
# whole grid, so thread 0 takes 0, 8 and 16, thread 1 takes 1, 9 and 17. At every step the threads stand side by
# side, and what the four of a block write together is one **request** to memory, in one piece of 32 bytes.
# `cuda.grid(1)` is the `i` of the last warm-up, and `cuda.gridsize(1)` the number of threads. The loop is
# `range(start, stop, step)`.
#
# Write every number plus 1, each by one thread. The check counts the pieces.

# %%
grade("ps00/stride", ...)


# %% solution="stride"
@cuda.jit
def stride(x, out):
    """out[i] becomes x[i] + 1 for all i, also where there are fewer threads. 2 lines."""
    first = cuda.grid(1)
    step = cuda.gridsize(1)
    ### BEGIN SOLUTION
    for i in range(first, x.size, step):
        out[i] = x[i] + 1
    ### END SOLUTION


# %% grade="ps00/stride"
grade("ps00/stride", stride)

# %% [markdown]
# ## 7. A block's shared table
#
# Threads of one block can pass numbers to each other through **shared memory**, a small table on the chip. Each
# block has a table of its own, which other blocks cannot see; `cuda.shared.array(4, float32)` makes one of four
# places. This kernel turns the four numbers of each block around: the last line takes out what another thread has
# put in.
#
# The line that fills the table is missing. Each thread puts its `x[i]` at its place `t`. Once it has run, the
# drawing shows the same threads twice, as they fill the table and as they read from it.

# %%
grade("ps00/shared", ...)


# %% solution="shared"
@cuda.jit
def shared(x, out):
    """The four numbers of each block, back to front. 1 line."""
    table = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    table[t] = x[i]
    ### END SOLUTION
    cuda.syncthreads()  # see warm-up 8
    out[i] = table[3 - t]


# %% grade="ps00/shared"
grade("ps00/shared", shared)

# %% [markdown]
# ## 8. Wait for the others
#
# The hardware runs the threads of a block 32 at a time; such a bundle is a **warp**, and its threads are its
# **lanes**, 0 to 31. The 64 threads here are two warps, and one of them may be far ahead of the other. A thread that
# reads from the table too early finds what was there before. `cuda.syncthreads()` is a **barrier**: no thread of the
# block goes on until all have come to it. If one is missing, and a result depends on which thread comes first, the
# threads are in a **race**.
#
# Fill the table, wait, and then write what stands 8 places further on, at `(t + 8) % 64`. In the drawing 64 boxes are
# too narrow for numbers, and a gap parts the two warps. It shows who reads what, and not when. Without a barrier it
# looks the same, so the check has to tell you.

# %%
grade("ps00/barrier", ...)


# %% solution="barrier"
@cuda.jit
def barrier(x, out):
    """out[t] becomes x[(t + 8) % 64], by way of the table. 3 lines."""
    table = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    ### BEGIN SOLUTION
    table[t] = x[t]
    cuda.syncthreads()
    out[t] = table[(t + 8) % 64]
    ### END SOLUTION


# %% grade="ps00/barrier"
grade("ps00/barrier", barrier)

# %% [markdown]
# ## 9. A sum of two
#
# Memory is read in pieces of 32 bytes, called **sectors**: eight numbers of 4 bytes. When eight threads read
# `x[0]` to `x[7]` at the same time, one sector is enough. So let neighbours read neighbours: thread `i` adds
# `x[i]` and the number that stands half the array further on, which is `x[i + out.size]`.
#
# `out` has half as many numbers as `x`, and there may be more threads than that.

# %%
grade("ps00/pair", ...)


# %% solution="pair"
@cuda.jit
def pair(x, out):
    """out[i] becomes x[i] + x[i + out.size], where there is an out[i]. 2 lines."""
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    if i < out.size:
        out[i] = x[i] + x[i + out.size]
    ### END SOLUTION


# %% grade="ps00/pair"
grade("ps00/pair", pair)

# %% [markdown]
# ## 10. The sum of a row
#
# One thread can also do more than one number's work: here each adds up a whole row. Keep the sum in a local
# variable, which is a register, and write it once. A sum kept in `out[row]` would go to memory and back for
# every number, and it would begin with whatever stood there before: nobody has put a 0 into `out`.
#
# `x.shape[1]` is how many numbers a row has.

# %%
grade("ps00/row_sum", ...)


# %% solution="row_sum"
@cuda.jit
def row_sum(x, out):
    """out[row] becomes the sum of a row. 3 lines."""
    row = cuda.grid(1)
    if row < out.size:
        total = float32(0)
        ### BEGIN SOLUTION
        for col in range(x.shape[1]):
            total += x[row, col]
        out[row] = total
        ### END SOLUTION


# %% grade="ps00/row_sum"
grade("ps00/row_sum", row_sum)

# %% [markdown]
# ## 11. All into one place
#
# Now all threads add to the *same* place. `out[0] += x[i]` is three steps, read, add and write, and threads that
# do them at the same time overwrite each other's sums. `cuda.atomic.add(array, index, value)` makes one step of
# the three, so that nothing is lost. It is called **atomic**: it cannot be cut.
#
# `out[0]` begins at 0.

# %%
grade("ps00/atomic", ...)


# %% solution="atomic"
@cuda.jit
def atomic(x, out):
    """out[0] becomes the sum of all x. 1 line."""
    i = cuda.grid(1)
    if i < x.size:
        ### BEGIN SOLUTION
        cuda.atomic.add(out, 0, x[i])
        ### END SOLUTION


# %% grade="ps00/atomic"
grade("ps00/atomic", atomic)

# %% [markdown]
# ## 12. A tiny tile
#
# Everything together. A block of 2 x 2 threads takes care of a **tile**, a piece of `x` of 2 x 2 numbers: its
# threads bring the four numbers into shared memory, each thread one, wait, and then every thread writes the sum
# of all four at its own place. `tx` and `ty` are the thread's column and row in its block, `col` and `row` those
# in the whole of `x`.
#
# Each number is read from `x` once. That is checked as well.

# %%
grade("ps00/tile", ...)


# %% solution="tile"
@cuda.jit
def tile(x, out):
    """out[row, col] becomes the sum of the four numbers of its tile. 3 lines."""
    part = cuda.shared.array((2, 2), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    part[ty, tx] = x[row, col]
    cuda.syncthreads()
    out[row, col] = part[0, 0] + part[0, 1] + part[1, 0] + part[1, 1]
    ### END SOLUTION


# %% grade="ps00/tile"
grade("ps00/tile", tile)

# %% [markdown]
# You have met the words that problem set 1 takes for granted: kernel, thread, register, block, grid, warp, lane,
# request, sector. There a thread colours a pixel.
