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
# # Problem set 7: Tensor Cores and low precision
#
# A satellite no larger than a shoebox photographs glaciers, and pays for every bit that it sends, receives or
# multiplies out of the same few watts. A network that learned on the ground goes up in as few bits as it can
# bear, and answers in integers. You write what lies between.
#
# **About 5 hours** (estimated), after chapter 7. Of the 100 points 5 need a CUDA GPU. Write in the place of
# `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted. Unless a task
# says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs the
# row.

# %%
from warplab.check import climb, grade, needs, predict, puzzle, when_written

needs("torch", "cuda")  # what the sets before could do without

import numpy as np
import torch
import warplab
from warplab import models

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# What is `np.float32(2**24) + np.float32(1)`?

# %%
puzzle("ps07/plus_one", ...)

# %% [markdown]
# FP8 E4M3 has three fraction bits. How many of its numbers lie from 128 up to, but not including, 256?

# %%
puzzle("ps07/between", ...)

# %% [markdown]
# `np.float16(1e-8)` is 0. What is the smallest k for which `np.float16(1e-8 * 2**k)` is not?

# %%
puzzle("ps07/whisper", ...)

# %% [markdown]
# The row `[100, 0.3, -0.3, 0.2]` is scaled so that its largest number becomes 127, and rounded. What becomes
# of 0.3?

# %%
puzzle("ps07/outlier", ...)

# %% [markdown]
# ## 1. A network by radio
#
# Weights go up as 8-bit integers. For each row of a weight matrix (each output) you send a scale, so that the
# row's largest number becomes 127 or -127:
#
# ```python
# scale = max(abs(row)) / 127                 # 1 for a row of zeros
# q = row / scale, rounded half to even       # whole numbers, -127 ... 127
# ```
#
# The satellite uses `scale * q` for the row. If $\sum |x|$ never exceeds `reach` for an input x, an output is off by
# at most `scale / 2 * reach`, since rounding moves a weight by at most half a step. But you have the weights, and can
# do better: return the most that an output can really be off with them.


# %% solution="quantize_int8"
def quantize_int8(w, reach):
    """Return (q, scale, bound). About 5 lines.

    w      float32 (rows, n)
    reach  the largest sum of |x| in an input of the layer, a number

    q      int8 (rows, n)
    scale  float32 (rows,)
    bound  (rows,), the most that each output can be off with these weights, for any such x
    """
    ### BEGIN SOLUTION
    # The division comes before the rounding, and the rounding before the cast: astype alone cuts off. Usual slips: one scale for the
    # whole matrix, which turns small rows into zeros (the chapter's twin); 128 steps, where int8 has 127 above zero; half a step in
    # the bound, which no weight need be off by, or the sum of all errors. The worst x has all of its reach at the worst weight. For
    # ordinary x the bound is loose: the cell below uses about a seventh of it, since errors of both signs cancel.
    largest = np.abs(w).max(axis=1)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    q = np.rint(w / scale[:, None]).astype(np.int8)
    return q, scale, np.abs(w - scale[:, None] * q).max(axis=1) * reach
    ### END SOLUTION


# %% grade="ps07/quantize_int8"
grade("ps07/quantize_int8", quantize_int8)

# %% [markdown]
# Made-up weights, with one row a hundred times larger. How much of the bound do a thousand made-up inputs
# use?

# %%
with when_written():
    rng = np.random.default_rng(7)
    w, x = rng.normal(size=(4, 256)).astype(np.float32), rng.normal(size=(256, 1000))
    w[2] *= 100
    reach = np.abs(x).sum(axis=0).max()
    q, scale, bound = quantize_int8(w, reach)
    worst = np.abs(w @ x - scale[:, None] * (q @ x)).max(axis=1)
    for row in range(4):
        print(f"row {row}: step {scale[row]:.4f}, off by {worst[row]:.3f} at worst, bound {bound[row]:.3f}")

# %% [markdown]
# ## 2. Every bit counts
#
# Measurements come down as short floating-point numbers: a sign bit, then `exponent_bits`, then
# `fraction_bits`, with the bias $2^{\text{exponent bits} - 1} - 1$:
#
# | | exponent bits | fraction bits | infinities |
# |---|---|---|---|
# | FP16 | 5 | 10 | yes |
# | BF16 | 8 | 7 | yes |
# | FP8 E5M2 | 5 | 2 | yes |
# | FP8 E4M3 | 4 | 3 | no |
#
# Let `power` be the exponent of the power of two at or below |x|, but never less than 1 - bias. Numbers there
# are $2^{\text{power} - \text{fraction bits}}$ apart. Count in such steps, and the code (without the sign)
# falls out:
#
# ```python
# steps = round(abs(x) / 2 ** (power - fraction_bits))           # half to even, as Python does
# code = steps + (power + bias - 1) * 2 ** fraction_bits
# ```
#
# For 0.1 in FP16, power is -4, steps are round(0.1 / 2⁻¹⁴) = 1638, and the code is 1638 + (-4 + 15 - 1) ·
# 1024 = 11878, binary 0 01011 1001100110. The leading 1 of the steps (1024) adds the one that the exponent
# field lacks; a subnormal has none and gets exponent 0; when rounding carries into the next power the
# exponent moves on by itself.
#
# *With* infinities, whatever rounds beyond the largest number gets infinity's code: all exponent bits 1,
# fraction 0. E4M3 has ordinary numbers in its last exponent too, up to 448; what is too large, infinity
# included, becomes the largest number. A NaN gets sign 0 and all other bits 1, in every format.


# %% solution="encode_float"
def encode_float(x, exponent_bits, fraction_bits, infinities):
    """Return the codes of all numbers of x, sign bit first, as whole numbers. About 12 lines.

    x                             float64 (n,)
    exponent_bits, fraction_bits  2 to 8, 1 to 10
    infinities                    True or False

    np.frexp(a) gives (m, e) with a = m * 2^e and m in [0.5, 1), so the power is e - 1; for a = 0 it gives e = 0.
    np.rint rounds half to even. np.signbit knows -0.0 from 0.0.
    """
    ### BEGIN SOLUTION
    # Counting in steps makes carries, subnormals and zero come out by themselves, if the parts are added and not joined by |. Rounding
    # comes once, before the limit: 65,519 is still 65,504 in FP16. Usual slips: a detour through float32, halves that always go up,
    # x < 0 for the sign (misses -0.0), E4M3 ended at 240 as IEEE would.
    size = np.abs(x)
    bias = 2 ** (exponent_bits - 1) - 1
    sign = 2 ** (exponent_bits + fraction_bits)
    power = np.where(size == 0, 1 - bias, np.maximum(np.frexp(size)[1] - 1, 1 - bias))
    steps = np.rint(np.ldexp(size, fraction_bits - power))  # times a power of two: exact
    code = steps + (power + bias - 1) * 2.0**fraction_bits
    last = sign - 2**fraction_bits if infinities else sign - 2
    code = np.where(np.isnan(x), sign - 1, np.minimum(code, last))
    return (code + sign * (np.signbit(x) & ~np.isnan(x))).astype(int)
    ### END SOLUTION


# %% grade="ps07/encode_float"
grade("ps07/encode_float", encode_float)

# %% [markdown]
# Ten thousand random numbers, encoded by you and by PyTorch:

# %%
with when_written():
    theirs = [
        ("FP16", torch.float16, torch.int16, (5, 10, True)),
        ("BF16", torch.bfloat16, torch.int16, (8, 7, True)),
        ("FP8 E5M2", torch.float8_e5m2, torch.uint8, (5, 2, True)),
        ("FP8 E4M3", torch.float8_e4m3fn, torch.uint8, (4, 3, False)),
    ]
    x = (rng.normal(size=10_000) * 2.0 ** rng.integers(-12, 6, 10_000)).astype(np.float32)
    for name, dtype, whole, form in theirs:
        codes = torch.from_numpy(x).to(dtype).view(whole).numpy().astype(np.int64) % 2 ** (
            1 + form[0] + form[1]
        )
        same = encode_float(x.astype(np.float64), *form) == codes
        print(f"{name:8} {same.sum():>6,} of {len(x):,} codes are the same")

# %% [markdown]
# ## 3. A whisper in sixteen bits
#
# On the ground the network learns, in FP16. A batch is a small `share` of all pictures, and its gradients are
# so small that FP16 makes them 0. So the *loss* is multiplied by a scale, and the gradients are divided by
# it:
#
# ```python
# grad1, grad2 = torch.autograd.grad(loss * scale, (w1, w2))     # float16
# grad1 = grad1.float() / scale                                  # float32, so that the quotient survives
# ```
#
# If the scale was too large there is an infinity or a NaN in one of the gradients. Then halve the scale and
# try again, until both are finite.


# %% solution="loss_scaling"
def loss_of(w1, w2, x, y, share):
    """The batch's share of the mean squared error: products in float16, the loss in float32."""
    guess = torch.tanh(x @ w1) @ w2
    return share * ((guess.float() - y) ** 2).mean()


def loss_scaling(w1, w2, x, y, share, scale):
    """Return (grad1, grad2, scale): the gradients by w1 and w2, and the scale that worked. About 10 lines.

    w1, w2, x  float16 arrays (width, hidden), (hidden, outputs), (batch, width); torch.from_numpy makes tensors of them
    y          float32 array (batch, outputs)
    share      a number, may be very small
    scale      the scale to begin with, a number

    grad1, grad2  float32 arrays like w1 and w2, with the scale taken out again
    """
    ### BEGIN SOLUTION
    # The scale has to be there before float16 rounds, so it multiplies the loss, and it may go only where the quotient survives, so the
    # division is in float32. Usual slips: scaling the gradients afterwards (zeros stay zeros), dividing in half, looking for NaN only or at
    # one gradient only, dividing by the scale that one began with.
    w1, w2, x, y = (torch.from_numpy(array) for array in (w1, w2, x, y))
    weights = w1.requires_grad_(), w2.requires_grad_()
    while True:
        grads = torch.autograd.grad(loss_of(w1, w2, x, y, share) * scale, weights)
        if all(grad.isfinite().all() for grad in grads):
            grad1, grad2 = (grad.float() / scale for grad in grads)
            return grad1.numpy(), grad2.numpy(), scale
        scale /= 2
    ### END SOLUTION


# %% grade="ps07/loss_scaling"
grade("ps07/loss_scaling", loss_scaling)

# %% [markdown]
# One made-up batch, a share of a millionth. How many of the first layer's 512 gradients are zero?

# %%
with when_written():
    batch = [
        rng.normal(0, s, shape).astype(np.float16)
        for s, shape in ((0.2, (16, 32)), (0.3, (32, 4)), (1, (64, 16)))
    ]
    for power in 0, 6, 12, 40:
        grad1, _, scale = loss_scaling(*batch, np.ones((64, 4), np.float32), 1e-6, 2.0**power)
        print(f"begun with 2^{power}: {(grad1 == 0).sum()} zeros; it worked with 2^{np.log2(scale):g}")

# %% [markdown]
# ## 4. Tiles for the warp
#
# The ground station's GPU has Tensor Cores. In chapter 7's WMMA kernel a warp uses each tile that it loads
# only once. Let a warp make **2 x 2** tiles of C, 32 x 32 numbers:
#
# ```text
#                   b[0]   b[1]                for every 16 steps of k:
#          a[0]   sums[0][0]  sums[0][1]           4 tiles loaded
#          a[1]   sums[1][0]  sums[1][1]           4 products of tiles
# ```
#
# ```python
# C = A[:, :k].astype(float32) @ B[:, :n].astype(float32)
# ```
#
# A and B may be windows of wider matrices: the rows of A are `lda` numbers apart, those of B `ldb`. So A's
# tile at (row, step) begins at `A + row * lda + step`, and `load_matrix_sync` has to know `lda`. C is not a
# window: its rows are n apart.
#
# m, n and k are multiples of 16, not always of 32. Where the last warp has no second row or column of tiles
# it may skip it, or do the last tile twice, `min(row + 16, m - 16)`. In C++, two fragments are `TileA a[2];`,
# and two whole numbers `int row[2] = {first, second};`.

# %% solution="wmma_matmul"
source = r"""
#include <mma.h>
using namespace nvcuda::wmma;
using TileA = fragment<matrix_a, 16, 16, 16, half, row_major>;
using TileB = fragment<matrix_b, 16, 16, 16, half, row_major>;
using Sums = fragment<accumulator, 16, 16, 16, float>;

// A block is one warp, for rows 32 * blockIdx.y ... + 31 and columns 32 * blockIdx.x ... + 31 of C. About 20 lines.
// A: m x k, rows lda apart. B: k x n, rows ldb apart. C: m x n.
extern "C" __global__
void wmma_matmul(const half* A, const half* B, float* C, int m, int n, int k, int lda, int ldb)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // Four tiles are loaded for four products, so each is used twice: half the chapter's sectors, 16 for each product. Usual slips: k and
    // n as the distance between rows (right until the matrices are windows), sums cleared in every step, a tile of B loaded again
    // for every row. At an odd edge the last tile is made twice, and the same numbers are stored twice: harmless, and no branch.
    TileA a[2];  TileB b[2];  Sums sums[2][2];
    int top = 32 * blockIdx.y, left = 32 * blockIdx.x;
    int row[2] = {top, min(top + 16, m - 16)};
    int col[2] = {left, min(left + 16, n - 16)};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            fill_fragment(sums[i][j], 0.0f);
    for (int step = 0; step < k; step += 16) {
        for (int i = 0; i < 2; i++) {
            load_matrix_sync(a[i], A + row[i] * lda + step, lda);
            load_matrix_sync(b[i], B + step * ldb + col[i], ldb);
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            store_matrix_sync(C + row[i] * n + col[j], sums[i][j], n, mem_row_major);
    /*
    ### END SOLUTION
    */
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")

# %% grade="ps07/wmma_matmul"
grade("ps07/wmma_matmul", wmma_matmul)

# %% [markdown]
# On a CUDA GPU, full points up to fifteen times the library's time.

# %% grade="ps07/wmma_matmul" rubric="time"
grade("ps07/wmma_matmul", wmma_matmul, rubric="time")

# %% [markdown]
# **Predict, then count.** For 128 x 128 x 128, chapter 7's kernel makes 64 x 8 x 2 = 1,024 requests to load,
# 16 sectors each. What does yours need? Put your two numbers in the place of the `...`.

# %%
A, B = rng.normal(size=(2, 128, 128)).astype(np.float16)
C = np.zeros((128, 128), np.float32)
p = warplab.profile(wmma_matmul[(4, 4), 32], A, B, C, 128, 128, 128, 128, 128)
if predict({"requests": ..., "sectors": ...}, lambda what: getattr(p.global_load, what)):
    print(f"{p.warp_instructions:,} instructions of warps, for {128**3:,} products of numbers")

# %% [markdown]
# This is also the next step of the product that set 4 began to climb. Put a sentence in the place of the `...`:
# what does a warp load less often than in the kernel before, and why? No points.

# %%
n = 256 if warplab.device().kind == "simt" else 2048
big = np.random.default_rng(0).standard_normal((2, n, n), np.float32).astype(np.float16)
with when_written():
    grid = n // 32, n // 32
    climb("Tensor Cores", wmma_matmul[grid, 32], *big, np.zeros((n, n), np.float32), n, n, n, n, n, note=...)

# %% [markdown]
# ## 5. Answers in integers *
#
# With inputs quantised as the weights were,
#
# ```python
# Y = X.astype(int32) @ W.astype(int32).T         # exact
# ```
#
# is all the arithmetic. A row holds `words` words of four int8 numbers, so that X and W arrive as pointers to `int`.
# Chapter 7's kernel has the instruction, `__dp4a`, but not chapter 4's tiles. Blocks have 16 x 16 threads: fetch 16
# words of 16 rows of X and of W onto two tables, meet, use every word sixteen times, meet again.
#
# Both matrices lie row by row along k, so let threads that are neighbours in x fetch words that are
# neighbours in a row, from X *and* from W. Thread (x, y) then fetches row y of W's table and reads row x: 16
# threads, 16 rows. A table 17 words wide has them in different banks.

# %% solution="int8_matmul"
source = r"""
// One thread: one sum of Y, at row 16 * blockIdx.y + threadIdx.y and column 16 * blockIdx.x + threadIdx.x. About 18 lines.
// X: m rows, W: n rows, of `words` words each; any numbers. Y: m x n.
extern "C" __global__
void int8_matmul(const int* X, const int* W, int* Y, int m, int n, int words)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // Zeros outside add nothing, so nobody leaves and the inner loop asks nothing. W's table is filled row by row (ty) and read by
    // column of Y (tx): with 16 words in a row 16 lanes would share two banks, 17 words put them into different ones. Usual slips: a
    // float for the sum (exact only to 2^24), char pointers (four times the loads), thread tx fetching row tx of W (16 sectors, not 4).
    __shared__ int xs[16][17], ws[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = 16 * blockIdx.y + ty, col = 16 * blockIdx.x + tx;
    int fetched = 16 * blockIdx.x + ty;             // the row of W that this thread fetches from
    int sum = 0;
    for (int first = 0; first < words; first += 16) {
        int place = first + tx;
        xs[ty][tx] = row < m && place < words ? X[row * words + place] : 0;
        ws[ty][tx] = fetched < n && place < words ? W[fetched * words + place] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum = __dp4a(xs[ty][i], ws[tx][i], sum);
        __syncthreads();
    }
    if (row < m && col < n)
        Y[row * n + col] = sum;
    /*
    ### END SOLUTION
    */
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")

# %% grade="ps07/int8_matmul"
grade("ps07/int8_matmul", int8_matmul)

# %% [markdown]
# On a CUDA GPU, full points up to six times the library's time.

# %% grade="ps07/int8_matmul" rubric="time"
grade("ps07/int8_matmul", int8_matmul, rubric="time")

# %% [markdown]
# A small network learns a hundred pictures in FP32 (stripes in noise stand in for glaciers), and goes up with
# your quantiser and your kernel.

# %%
with when_written():
    torch.manual_seed(7)
    torch.set_num_threads(1)  # layers this small gain nothing from more
    (images, kinds), (test, answers) = models.pictures(100, seed=1), models.pictures(1000, seed=2)
    net = torch.nn.Sequential(
        torch.nn.Linear(256, 128, bias=False), torch.nn.ReLU(), torch.nn.Linear(128, 4, bias=False)
    )
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images.flatten(1)), kinds).backward()
        optimizer.step()

    def int8_layer(x, w):
        """x @ w.T with your code, float32 in and out."""
        (qx, sx, _), (qw, sw, _) = quantize_int8(x, 1.0), quantize_int8(w, 1.0)
        sums = np.zeros((len(x), len(w)), np.int32)
        int8_matmul[(-(-len(w) // 16), -(-len(x) // 16)), (16, 16)](
            qx, qw, sums, len(x), len(w), x.shape[1] // 4
        )
        return sums * sx[:, None] * sw

    first, second = (layer.weight.detach().numpy() for layer in (net[0], net[2]))
    pixels = test.flatten(1).numpy()
    plain = net(torch.from_numpy(pixels)).argmax(1).numpy()
    print(
        f"FP32: {(plain == answers.numpy()).mean():.1%} right, {first.nbytes + second.nbytes:,} bytes of weights"
    )
    eight = int8_layer(np.maximum(int8_layer(pixels, first), 0), second).argmax(1)
    sent = sum(w.size + 4 * len(w) for w in (first, second))
    print(f"INT8: {(eight == answers.numpy()).mean():.1%} right, {sent:,} bytes of weights and scales")
    print(f"{(eight == plain).mean():.1%} of the answers are the same")

# %% [markdown]
# ## 6. Predict and explain
#
# To see how bright a picture is, 4,096 numbers of 0.3 are added: one after the other; or in blocks of 64, and
# then the blocks' sums; or in pairs, as in a tree. The sum should be 1,228.8, but every step is rounded to
# the format.
#
# 1. **Predict**, in the place of the `...`, the three results in FP16 and in BF16, to within a tenth.
# 2. **Explain**: where does the long sum stop, and why there? Why can it be too *large* before that? Why do
#    the other two do better, although they round as often?
# 3. A Tensor Core that keeps only some 14 bits of its sums is said to be good enough if they are carried over
#    to FP32 every 128 terms or so. Which of the three ways is that?
#
# About 150 words.


# %%
def chain(terms):
    """Sum along the last axis, one after the other, rounded to the format of the terms each time."""
    total = terms[..., 0]
    for i in range(1, terms.shape[-1]):
        total = total + terms[..., i]
    return total


def tree(terms):
    while len(terms) > 1:
        terms = terms[::2] + terms[1::2]
    return terms[0]


def summed(what):
    dtype, way = what
    terms = torch.full((4096,), 0.3, dtype={"FP16": torch.float16, "BF16": torch.bfloat16}[dtype])
    if way == "blocks":
        return float(chain(chain(terms.reshape(64, 64))))
    return float(chain(terms) if way == "one by one" else tree(terms))


predict(
    {
        **{("FP16", "one by one"): ..., ("FP16", "blocks"): ..., ("FP16", "tree"): ...},
        **{("BF16", "one by one"): ..., ("BF16", "blocks"): ..., ("BF16", "tree"): ...},
    },
    summed,
    found="came out",
)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** FP16: 1,024, 1,218 and 1,229; BF16: 128, 1,216 and 1,232. Between 1,024 and 2,048 FP16's numbers are 1 apart,
# and 0.3 is less than half of that: each sum rounds back, and the chain stands still. BF16's numbers are 1 apart from 128 on, so it
# stops there. One power of two earlier the steps are 0.5. There 0.3 is more than half a step, so every term is rounded up and
# counts 0.5: between 512 and 1,024 the FP16 sum runs too fast, and arrives after 2,975 terms where 3,413 would be right.
#
# What is lost depends on the size of the sum beside its term, not on the number of roundings. In blocks a sum stays below 20 while the
# terms are 0.3, and when sums become large their terms are blocks of 19. In a tree both are of the same size, always; here each is
# twice another number, which is exact, and the result is off only as far as 0.3 itself was rounded.
#
# Sums that are carried over every 128 terms are the second way, with a better format for the outer chain: the short sums never grow far
# beyond their terms, and the long one has 24 bits.
#
# **Marking.** 1 point: predictions, or wrong ones corrected. 2 points: half a step against the term, with the right power of two, and rounding up
# before that. 1 point: sums and terms of a size, in blocks and tree. 1 point: blocks, and FP32 for the long sum.
# ### END SOLUTION
