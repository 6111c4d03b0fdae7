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
# # Problem set 12: One kernel, three languages
#
# A small company sells one program that runs on everybody's graphics card, and hires for a language that its
# competitors' kernels are written in. You know numba and CUDA C++. In Triton you say what a whole block of
# numbers does, and the compiler decides which thread does it.
#
# **About 5 hours** (estimated), after chapter 8. Of the 100 points 9 need a CUDA GPU. Write in the place of
# `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted. Unless a task
# says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs the
# row.
#
# Triton has wheels for Linux (Windows: WSL; or Colab). Where it is not installed, this set cannot be solved,
# and where it is graded without Triton nobody loses a point.

# %%
from warplab.check import grade, needs, predict, puzzle, when_written

needs("torch", "triton", "cuda")  # what the sets before could do without

import functools

from IPython.display import display
import torch
import triton
import triton.language as tl
import warplab
from warplab.figures.languages import side_by_side

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# A vector of 1,000 numbers is cut into blocks of 256, one for each program. How many places of the last block
# are masked out?

# %%
puzzle("ps12/masked", ...)

# %% [markdown]
# `tl.arange(0, 1024)` in a kernel that is launched with `num_warps=8`: how many of the numbers does each
# thread hold?

# %%
puzzle("ps12/each", ...)

# %% [markdown]
# That program loads 1,024 neighbouring float32 numbers. A thread can ask for 16 bytes at once. How many
# requests do its eight warps make?

# %%
puzzle("ps12/requests", ...)

# %% [markdown]
# Rows of 1,000 numbers lie in blocks of 1,024. For the mean, the masked places are loaded as 0, and so add
# nothing to the sum of the row. By how much are the *squares of the differences from the mean* too large in
# sum, if all numbers of the row are 3?

# %%
puzzle("ps12/squares", ...)

# %% [markdown]
# ## 1. A program and its block
#
# A numba kernel says what one thread does. A Triton kernel says what one *program* does, with whole blocks of
# numbers:
#
# ```python
# @cuda.jit                                   @triton.jit
# def add(x, y, out):                         def add(x, y, out, n, BLOCK: tl.constexpr):
#     i = cuda.grid(1)                            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
#     if i < x.size:                              inside = i < n
#         out[i] = x[i] + y[i]                    total = tl.load(x + i, mask=inside) + ...
#                                                 tl.store(out + i, total, mask=inside)
# add[blocks, 256](x, y, out)                 add[(programs,)](x, y, out, n, BLOCK=256, num_warps=4)
# ```
#
# `x` is the address of the first number, so `x + i` are `BLOCK` addresses, and there is no `x.size`: what a
# kernel needs to know of its arrays, it is told. A program runs as one block of `32 * num_warps` threads (4 warps
# by default), and `BLOCK` is a power of two. Triton spreads the numbers over the threads. Where there are
# enough, a thread gets 4 neighbours, which it loads and stores with one instruction.
#
# A masked place is not read. It holds what `other` says, as in `tl.load(x + i, mask=inside, other=0.0)`; without
# it nothing is promised (Triton 3.7 puts 0). `tl.where(inside, a, b)` chooses place by place. On the host,
# `triton.cdiv(n, BLOCK)` divides and rounds up, and `triton.next_power_of_2(n)` is a block for n numbers.
# `help(tl.load)` has more.
#
# Your host function gets arrays and launches on them. In this notebook they can be tensors; where you are
# graded they are arrays without values, which have a `shape`, a `dtype` and a `stride(axis)`.


# %% solution="vector_add"
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    """One program: BLOCK neighbouring numbers. About 4 lines."""
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    tl.store(out + i, total, mask=inside)
    ### END SOLUTION


def vector_add(x, y, out):
    """Fill `out` with x + y. About 2 lines.

    x, y, out  float32 (n,), any n from 1 on

    For many numbers, each thread of a program must have at least 4 neighbours, so that it asks for 16 bytes at once.
    """
    ### BEGIN SOLUTION
    # 4 warps of 32 threads with 4 numbers are 512: from BLOCK=512 on a load is 16 bytes a thread. Usual slips: BLOCK=128, which
    # is right and has four times the requests; a grid that rounds down; no mask; a grid that is no tuple.
    n = x.shape[0]
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    ### END SOLUTION


# %% grade="ps12/vector_add"
grade("ps12/vector_add", vector_add)

# %% [markdown]
# The same function on tensors:

# %%
with when_written():
    x, y = torch.rand(2, 1000, device=warplab.torch_device)
    out = torch.empty_like(x)
    vector_add(x, y, out)
    print("as torch adds them:", torch.equal(out, x + y))

# %% [markdown]
# ## 2. A row that stays on the chip
#
# A translator writes sentence after sentence, and at each word turns a row of scores into probabilities. As
# three kernels (maximum, sum, quotient) that is three trips through memory for each score. One program can
# hold a whole row:
#
# ```python
# score = tl.load(...)                          # a row, with what lies past its end masked out
# power = tl.exp(score - tl.max(score, axis=0))
# power / tl.sum(power, axis=0)
# ```
#
# The scores of a row are the first `columns` of a longer row, so that rows begin `x.stride(0)` numbers apart.
# What lies between is not yours to read.
#
# A score of minus infinity is a word that may not come: its probability is 0. Where no word may come (a row of
# minus infinities alone), all probabilities are 0. A row with NaN or with plus infinity among its scores
# becomes NaN throughout, as in torch. In a kernel infinity is `float("inf")`.


# %% solution="fused_softmax"
@triton.jit
def softmax_kernel(x, out, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    """One program: one row, of at most BLOCK numbers. About 9 lines."""
    ### BEGIN SOLUTION
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    score = tl.load(x + row * x_stride + i, mask=inside, other=-float("inf"))
    largest = tl.max(score, axis=0)
    largest = tl.where(largest == -float("inf"), 0.0, largest)
    power = tl.exp(score - largest)
    total = tl.sum(power, axis=0)
    total = tl.where(total == 0.0, 1.0, total)
    tl.store(out + row * out_stride + i, power / total, mask=inside)
    ### END SOLUTION


def fused_softmax(x, columns, out):
    """Fill each row of `out` with the softmax of the first `columns` numbers of that row of `x`. About 3 lines.

    x        float32 (rows, at least columns)
    columns  from 1 to 4,096
    out      float32 (rows, columns)

    1. Read each number once, and write each probability once.
    2. Subtract the largest number of the row before exp.
    3. Rows of minus infinities alone become zeros.
    """
    ### BEGIN SOLUTION
    # minus infinity is what the places past the end are loaded as: it is no maximum, and its power is 0. Where it is the maximum,
    # minus infinity minus itself is NaN, so such a row takes 0 for it, and divides by 1. NaN and plus infinity need nothing: NaN
    # survives exp, sum and quotient, and infinity minus infinity is NaN. Usual slips: other=0.0, which is a maximum of negative
    # rows and adds to the sum; the stride of x for out; the next power of two of the stride, which reads between the rows.
    rows, width = x.shape[0], triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, x.stride(0), out.stride(0), BLOCK=width)
    ### END SOLUTION


# %% grade="ps12/fused_softmax"
grade("ps12/fused_softmax", fused_softmax)

# %% [markdown]
# On a CUDA GPU, full points up to twice the time of a copy of as many bytes.

# %% grade="ps12/fused_softmax" rubric="time"
grade("ps12/fused_softmax", fused_softmax, rubric="time")

# %% [markdown]
# ## 3. Layer norm, there
#
# The translator's network normalises each row of its activations before every layer:
#
# $$y = (x - \text{mean}) \cdot \text{rstd} \cdot \gamma + \beta, \qquad \text{rstd} = 1 / \sqrt{\text{var} + \varepsilon}$$
#
# with the row's mean, and its variance, the mean of the squares $(x - \text{mean})^2$. The two numbers of each
# row are kept for the way back. Here and in task 4 rows lie side by side: row r begins at `x + r * columns`.
#
# $\text{mean}(x^2) - \text{mean}^2$ is the variance as well, on paper. In float32 it is the difference of two
# large numbers for a row that lies far from zero.


# %% solution="layer_norm"
@triton.jit
def norm_kernel(x, gamma, beta, eps, y, mean, rstd, columns, BLOCK: tl.constexpr):
    """One program: one row, of at most BLOCK numbers. About 12 lines."""
    ### BEGIN SOLUTION
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    value = tl.load(x + row * columns + i, mask=inside, other=0.0)
    middle = tl.sum(value, axis=0) / columns
    apart = tl.where(inside, value - middle, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    g = tl.load(gamma + i, mask=inside)
    b = tl.load(beta + i, mask=inside)
    tl.store(y + row * columns + i, apart * scale * g + b, mask=inside)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)
    ### END SOLUTION


def layer_norm(x, gamma, beta, eps, y, mean, rstd):
    """Fill y, mean and rstd. About 3 lines.

    x, y         float32 (rows, columns), columns from 1 to 4,096
    gamma, beta  float32 (columns,)
    eps          a number
    mean, rstd   float32 (rows,)

    Read x once, and take the variance of what is left when the mean is subtracted.
    """
    ### BEGIN SOLUTION
    # The places past the end are loaded as 0, which the mean forgives and the variance does not: 0 - mean is no 0. Usual slips:
    # that; dividing by BLOCK; mean(x * x) - mean * mean, wrong by the square of how far the row lies from zero; eps outside the
    # root.
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    norm_kernel[(rows,)](x, gamma, beta, eps, y, mean, rstd, columns, BLOCK=width)
    ### END SOLUTION


# %% grade="ps12/layer_norm"
grade("ps12/layer_norm", layer_norm)

# %% [markdown]
# ## 4. Layer norm, and back
#
# On the way back `dy` comes in, how much the loss changes with each y. With $h = (x - \text{mean}) \cdot
# \text{rstd}$ and $w = dy \cdot \gamma$, and means along the row:
#
# $$dx = (w - h \cdot \text{mean}(h w) - \text{mean}(w)) \cdot \text{rstd}, \qquad
# d\gamma = \sum_{\text{rows}} dy \cdot h, \qquad d\beta = \sum_{\text{rows}} dy$$
#
# dx is a matter of one row, and dγ and dβ of all rows. A launch of its own for them would read x and dy a
# second time. So let 32 programs take the rows in turn (program p the rows p, p + 32, ...), each keep sums of
# its own rows, and write them to `partial`; a second launch adds up the 32. With fixed sums instead of
# atomics, two runs give the same bits.
#
# A kernel has Python's `for` over a `range`, also one whose ends are known only at the launch. A name keeps its
# shape and type in it, so a sum begins as a block: `tl.zeros((BLOCK,), tl.float32)`. `partial` begins with
# rubbish in all of its 32 places, also where there are fewer rows than programs.


# %% solution="layer_norm_backward"
@triton.jit
def backward_kernel(
    x,
    gamma,
    mean,
    rstd,
    dy,
    partial,
    dx,
    rows,
    columns,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program: the rows p, p + PROGRAMS, ..., and their sums for dgamma and dbeta. About 20 lines."""
    ### BEGIN SOLUTION
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    g = tl.load(gamma + i, mask=inside, other=0.0)
    for_gamma = tl.zeros((BLOCK,), tl.float32)
    for_beta = tl.zeros((BLOCK,), tl.float32)
    for row in range(p, rows, PROGRAMS):
        scale = tl.load(rstd + row)
        value = tl.load(x + row * columns + i, mask=inside, other=0.0)
        d = tl.load(dy + row * columns + i, mask=inside, other=0.0)
        h = (value - tl.load(mean + row)) * scale
        w = d * g
        along = tl.sum(h * w, axis=0) / columns
        level = tl.sum(w, axis=0) / columns
        tl.store(dx + row * columns + i, (w - h * along - level) * scale, mask=inside)
        for_gamma += d * h
        for_beta += d
    tl.store(partial + p * columns + i, for_gamma, mask=inside)
    tl.store(partial + (PROGRAMS + p) * columns + i, for_beta, mask=inside)
    ### END SOLUTION


@triton.jit
def add_up_kernel(partial, dgamma, dbeta, columns, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """One program: BLOCK neighbouring columns, over all PROGRAMS. About 7 lines."""
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < columns
    at = tl.arange(0, PROGRAMS)[:, None] * columns + i[None, :]
    for_gamma = tl.load(partial + at, mask=inside[None, :], other=0.0)
    for_beta = tl.load(partial + PROGRAMS * columns + at, mask=inside[None, :], other=0.0)
    tl.store(dgamma + i, tl.sum(for_gamma, axis=0), mask=inside)
    tl.store(dbeta + i, tl.sum(for_beta, axis=0), mask=inside)
    ### END SOLUTION


def layer_norm_backward(x, gamma, mean, rstd, dy, partial, dx, dgamma, dbeta):
    """Fill dx, dgamma and dbeta. About 5 lines.

    x, dy, dx      float32 (rows, columns), columns from 1 to 4,096
    gamma, dgamma, dbeta  float32 (columns,)
    mean, rstd     float32 (rows,), of layer_norm
    partial        float32 (2, 32, columns), for sums of 32 programs; its contents afterwards do not matter

    1. Read x and dy once, and write dx once.
    2. Add up dgamma and dbeta without atomics.
    """
    ### BEGIN SOLUTION
    # x and dy are read where dx needs them, and the sums go along in registers. Places past the end have dy = 0, so they add
    # nothing to any sum. Usual slips: the mean of h * w by BLOCK; sums of one row that overwrite those of another; partial read
    # with fewer programs than were launched, or never written where there are fewer rows than 32.
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    backward_kernel[(32,)](x, gamma, mean, rstd, dy, partial, dx, rows, columns, PROGRAMS=32, BLOCK=width)
    add_up_kernel[(triton.cdiv(columns, 32),)](partial, dgamma, dbeta, columns, PROGRAMS=32, BLOCK=32)
    ### END SOLUTION


# %% grade="ps12/layer_norm_backward"
grade("ps12/layer_norm_backward", layer_norm_backward)

# %% [markdown]
# On a CUDA GPU, full points up to twelve times the time of a copy of x, dy and dx, for both launches.

# %% grade="ps12/layer_norm_backward" rubric="time"
grade("ps12/layer_norm_backward", layer_norm_backward, rubric="time")

# %% [markdown]
# ## 5. A product of tiles
#
# The translator's layers are products of matrices. `tl.dot(left, right, total)` adds the product of two blocks
# to a third, and the compiler gives it to the Tensor Cores. One program makes a tile of c: it goes along k in
# steps of BK, loads a BM x BK block of a and a BK x BN block of b, and adds their product.
#
# Addresses of a block have two axes: `row[:, None] * a_stride + at[None, :]` are BM x BK of them, as broadcasting
# makes them in NumPy, and a mask is made the same way: `(row[:, None] < m) & ...`, with brackets round each
# comparison, because `&` comes before `<`. Sides of blocks are powers of two, from 16 on.
#
# The factors are FP16, as ps07's were. A product of two such numbers is exact in FP32, which is where the sums
# belong.


# %% solution="matmul_dot"
@triton.jit
def product_kernel(
    a,
    b,
    c,
    m,
    n,
    k,
    a_stride,
    b_stride,
    c_stride,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """One program: a tile of BM x BN numbers of c. About 12 lines."""
    ### BEGIN SOLUTION
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        of_a = (row[:, None] < m) & (at[None, :] < k)
        of_b = (at[:, None] < k) & (column[None, :] < n)
        left = tl.load(a + row[:, None] * a_stride + at[None, :], mask=of_a, other=0.0)
        right = tl.load(b + at[:, None] * b_stride + column[None, :], mask=of_b, other=0.0)
        total = tl.dot(left, right, total)
    of_c = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * c_stride + column[None, :], total, mask=of_c)
    ### END SOLUTION


def matmul_dot(a, b, c):
    """Fill c with a @ b. About 4 lines.

    a  float16 (m, k), any m, n and k from 1 on
    b  float16 (k, n)
    c  float32 (m, n)

    1. Multiply the FP16 numbers as they are, and add up in FP32.
    2. Let a program make at least 64 x 64 numbers of c.
    """
    ### BEGIN SOLUTION
    # Every tile goes along the whole of k, so a larger tile reads less: a number of a is used for BN numbers of c. Usual slips: no mask
    # along k, or other=None there, so that what lies behind a row is multiplied; `.to(tl.float32)` before tl.dot, which is TF32 at
    # half the rate; grid and program_id in another order, which only square products forgive; total in FP16.
    (m, k), n = a.shape, b.shape[1]
    grid = triton.cdiv(m, 64), triton.cdiv(n, 64)
    strides = a.stride(0), b.stride(0), c.stride(0)
    product_kernel[grid](a, b, c, m, n, k, *strides, BM=64, BN=64, BK=32, num_warps=4)
    ### END SOLUTION


# %% grade="ps12/matmul_dot"
grade("ps12/matmul_dot", matmul_dot)

# %% [markdown]
# On a CUDA GPU, full points up to three times the library's time.

# %% grade="ps12/matmul_dot" rubric="time"
grade("ps12/matmul_dot", matmul_dot, rubric="time")

# %% [markdown]
# ## 6. Who chooses the tile
#
# The translator first reads a prompt, many rows at once, and then adds word after word: a few rows, with the
# same weights. Large tiles read the factors seldom. For few rows they multiply padding, and leave most of
# the GPU without a block. So for each size the tile is chosen from a list:
#
# ```python
# tuned = triton.autotune([triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4), ...], key=[...])(kernel)
# tuned[lambda chosen: (triton.cdiv(m, chosen["BM"]), ...)](a, b, c, m, ...)     # without BM, BN, BK
# ```
#
# `key` names the arguments of the kernel on which the best choice depends. With a value of them that has not
# come before, all configurations are tried. On CUDA Triton takes the fastest. The engine has no times: it takes
# the one whose counts allow the least time on an A100, by `warplab.bounds`, which is theory and says so. Where you
# are graded, it chooses the same way, on arrays of zeros.


# %% solution="autotune"
@functools.cache  # made once: what has been chosen is kept in it
def tuned_kernel():
    """product_kernel, autotuned. About 4 lines.

    1. Configurations for many rows and for few.
    2. A key that tells the two products apart. Here the number of rows does; sizes that other launches change, such as
       those of the weights, belong in it as well.
    """
    ### BEGIN SOLUTION
    # Tiles of 16 rows for a few words, of 64 x 64 and more for prompts. Usual slips: no small tile, so that 16 rows are multiplied
    # as 64; a key without m, so that whichever product comes first chooses for both; key=["a"], an array, where a size is meant.
    tiles = (16, 16, 64, 1), (32, 32, 32, 4), (64, 64, 32, 4), (128, 64, 32, 4)
    known = [triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps) for bm, bn, bk, warps in tiles]
    return triton.autotune(known, key=["m", "n", "k"])(product_kernel)
    ### END SOLUTION


def tuned_products(prompt, words, weights, out_prompt, out_words):
    """Fill out_prompt with prompt @ weights, and out_words with words @ weights. About 6 lines.

    prompt, words  float16 (m, k), each with its own m from 1 on
    weights        float16 (k, n)
    out_prompt, out_words  float32 (m, n)
    """
    ### BEGIN SOLUTION
    k, n = weights.shape
    for rows, out in ((prompt, out_prompt), (words, out_words)):
        m = rows.shape[0]
        strides = rows.stride(0), weights.stride(0), out.stride(0)

        def grid(chosen, m=m):
            return triton.cdiv(m, chosen["BM"]), triton.cdiv(n, chosen["BN"])

        tuned_kernel()[grid](rows, weights, out, m, n, k, *strides)
    ### END SOLUTION


# %% grade="ps12/autotune"
grade("ps12/autotune", tuned_products)

# %% [markdown]
# On a CUDA GPU, full points up to three times the time of the library's product for the prompt.

# %% grade="ps12/autotune" rubric="time"
grade("ps12/autotune", tuned_products, rubric="time")

# %% [markdown]
# What was chosen, and how the least times of the configurations compare (on CUDA: their times):

# %%
with when_written():
    tuned = tuned_kernel()
    for m in 16, 1024:
        rows = torch.rand(m, 128, device=warplab.torch_device).half()
        weights = torch.rand(128, 1024, device=warplab.torch_device).half()
        out = torch.empty(m, 1024, device=warplab.torch_device)
        tuned_products(rows, rows, weights, out, torch.empty_like(out))
        print(f"{m} rows: {tuned.best_config}")
        best = min(tuned.configs_timings.values())[0]
        for configuration, (least, *_) in tuned.configs_timings.items():
            print(f"    {least / best:5.2f} times the best: {configuration}")

# %% [markdown]
# ## Three languages side by side
#
# The same work in numba and in CUDA C++, as the sets up to now have it, beside your Triton: what does each ask of
# memory? Your sum has a program of 128 threads where the others have a thread for every number. The others' softmax
# reads a row twice and their layer norm three times, forward as well as backward, and yours once. The product in
# numba is ps04's on CUDA cores, the one in C++ ps07's, with a warp for every 32 x 32 numbers, however many rows there
# are.
#
# Triton's compiler notes whether 16 divides a size that a launch passes. It does not divide softmax's 1,000
# columns, so a thread loads one number at a time there. Of layer norm's 768 it loads four.

# %%
with when_written():
    display(side_by_side("vector_add", vector_add))

# %%
with when_written():
    display(side_by_side("softmax", fused_softmax))

# %%
with when_written():
    display(side_by_side("layer_norm", layer_norm))

# %%
with when_written():
    display(side_by_side("layer_norm_backward", layer_norm_backward))

# %%
with when_written():
    display(side_by_side("matmul", matmul_dot))

# %%
with when_written():
    display(side_by_side("autotune", tuned_products))

# %% [markdown]
# ## 7. Predict and explain
#
# `softmax_kernel` on 64 rows of 1,024 numbers, once with `num_warps=1` and once with `num_warps=8`.
#
# 1. **Predict**, in the place of the `...`: with how many warps (1 or 8) is shared memory asked more often, how
#    often with 1, and how many times the sectors of global memory that 1 warp touches do 8 touch? The counts
#    come when all three are said.
# 2. **Explain** both: what does `tl.max` do with numbers that lie in the registers of several warps?
# 3. Why is the other choice not always the better one?
#
# About 150 words.


# %%
def softmax_counts(warps):
    x = torch.randn(64, 1024, device=warplab.torch_device)
    out = torch.empty_like(x)
    return warplab.profile(softmax_kernel[(64,)], x, out, 1024, 1024, 1024, BLOCK=1024, num_warps=warps)


def compared(what):
    one, eight = softmax_counts(1), softmax_counts(8)
    asked = one.shared_memory.requests, eight.shared_memory.requests
    return {
        "shared memory more often": 1 if asked[0] > asked[1] else 8,
        "requests to it with 1": asked[0],
        "sectors, 8 over 1": eight.global_memory.sectors / one.global_memory.sectors,
    }[what]


if predict(
    {"shared memory more often": ..., "requests to it with 1": ..., "sectors, 8 over 1": ...}, compared
):
    for warps in 1, 8:
        p = softmax_counts(warps)
        print(
            f"num_warps={warps}: {p.global_memory.sectors:,} sectors, {p.shared_memory.requests:,} requests to shared "
            f"memory, {p.registers} registers"
        )

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** With one warp, shared memory is never asked: all 1,024 numbers of a row lie in the registers of 32 threads,
# 32 each, and the maximum goes from lane to lane by shuffles. With eight warps a thread holds four numbers; each warp finds its own
# maximum by shuffles, and the eight results meet in shared memory, behind a barrier, once for the maximum and once for the sum.
# Global memory sees the same sectors, since each number is loaded once either way, whoever holds it.
#
# One warp has the fewest exchanges, but 32 numbers a thread take registers, a row is loaded by one warp alone, and a longer row
# would spill. Eight warps hold a row in a few registers and have more loads under way; they pay with barriers.
#
# **Marking.** 1 point: the prediction, or the wrong one corrected. 1 point: the sectors are the same, because each number is
# loaded once. 2 points: reductions go by shuffles within a warp and through shared memory between warps. 1 point: registers
# (or loads under way) against exchanges.
# ### END SOLUTION
