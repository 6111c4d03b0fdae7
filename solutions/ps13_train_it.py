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
# # Problem set 13: Train it
#
# A post office on an island sorts its letters by hand. The clerk wants a machine that reads the digits on the
# envelopes, and the ship with the library for that is not coming. So you write all of it: the kernels of a
# training step, forward and backward, and then the run in which a network learns with nothing but them.
#
# **About 8 hours** (estimated; the stars about 7 more), after chapter 13. Of the 100 points 1 needs a CUDA GPU.
# Write in the place of `raise NotImplementedError()` and delete that line; `help(grade)` says how points are
# counted. Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed
# one costs the row.

# %%
import math

import numpy as np
import warplab
from IPython.display import display
from numba import cuda, float32
from warplab.check import climb, grade, needs, predict, puzzle, when_written

needs("cuda")  # what the sets before could do without

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Forward, a linear layer is one product of matrices. How many products of as many multiply-adds does it take
# backward, for the gradients by its batch and by its weights?

# %%
puzzle("ps13/products", ...)

# %% [markdown]
# A network that knows nothing gives all ten digits the same probability. What is its cross-entropy, in
# natural logarithms, to two decimals?

# %%
puzzle("ps13/nothing", ...)

# %% [markdown]
# In its very first step AdamW meets a gradient of 0.001, with a learning rate of 0.1 and no decay. How far
# does it move the weight?

# %%
puzzle("ps13/first_step", ...)

# %% [markdown]
# Four tokens attend to one another, each to itself and to those before it. How many scores count?

# %%
puzzle("ps13/causal", ...)

# %% [markdown]
# ## How it is written here
#
# All arrays are row-major and float32, labels and tokens int32. One layout holds for the whole set:
#
# | | shape |
# |---|---|
# | a batch `x` | (batch, inputs) |
# | a layer's weights `w` and bias `b` | (inputs, outputs) and (outputs,), so that y = x @ w + b |
# | the gradient of the loss by `x` | `grad_x`, of the shape of x |
# | the batch's part of a data set | the whole array, and `first`, the row where the batch begins |
#
# You write host code, and the kernels that it launches. Its arrays live on a `device`. On the host each is a
# *handle*, which has a `shape`, a `size` and a `dtype`, and no values. So nothing can be computed but by a
# kernel of yours.
#
# ```python
# rows = device.empty((64, 2), "float32")              # a new array, its contents undefined
# sums = device.zeros(10, "float32")                   # a new array of zeros
# device.fill(grad_b, 0)                               # every element of an array
# device.launch(kernel, grid, block, x, rows, 3)       # arrays and numbers; kernel[grid, block](x, rows, 3)
# ```
#
# `kernel` is yours in any language: `@cuda.jit` of numba, or CUDA C++ in
# `warplab.cuda_kernel(source, "name")`, to which an array is a pointer. One in Triton is launched in Triton's own
# way instead, `kernel[(programs,)](x, rows, 3, BLOCK=256)`, as in set 12. Numbers that the host knows, such as
# a size or 1 - beta, may be worked out there; a kernel of numba's gets a Python float in float64, and
# `np.float32(x)` in float32. An array that is passed in holds what the text says; one that is to be filled holds
# nothing of use. Sums are made in float32 or better, so that Tensor Cores with TF32 are not exact enough.
#
# In the small cases each gradient is compared with finite differences: the judge moves every number of x up and down
# a little, in float64, and looks at what the result does. Try that yourself where a gradient is wrong.

# %% [markdown]
# ## 1. A layer, there and back
#
# ```python
# y = x[first : first + batch] @ w + b
#
# grad_x = grad_y @ w.T                         # (batch, inputs)
# grad_w = x[first : first + batch].T @ grad_y  # (inputs, outputs)
# grad_b = grad_y.sum(axis=0)                   # (outputs,)
# ```
#
# x may have more rows than the batch, which has as many as y and grad_y. Batch, inputs and outputs are any
# numbers from 1 on. All three products fetch tiles onto shared memory, as in chapter 4, so that no number is
# fetched more than about once a tile. Two of them take one matrix transposed: let neighbouring threads fetch
# numbers that are neighbours in memory, and turn the tile when you put it down. One kernel can do all three.
#
# The row *sectors* adds up what all launches read for a batch of 48, 96 inputs
# and 64 outputs. Tiles of 16 x 16 earn all of it.

# %% solution="linear"
source = r"""
// One number of C (m x n) = A (m x k) @ B (k x n), and bias[column] where with_bias is 1. Blocks of 16 x 16. About 18 lines.
// A's number (i, p) is a[first + i * a_row + p * a_col], B's number (p, j) is b[p * b_row + j * b_col]:
// a transposed matrix is one whose two distances have changed places. One distance of each is 1. `first` is here no row, but the place
// in memory where A begins. Where with_bias is 0, `bias` is not read, and any array may be passed for it.
extern "C" __global__
void product(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
             int first, int a_row, int a_col, int b_row, int b_col, int with_bias)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // threadIdx.x walks along the side on which neighbours lie in memory, whichever that is, and the table has a 17th column so that a
    // tile may be put down turned. Usual slips: a transposed side fetched down its columns (right, and 16 sectors for 2), zeros
    // forgotten where a tile hangs over, the bias added in every step or in the products backward, `first` left out in grad_w.
    __shared__ float left[16][17], right[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = 16 * blockIdx.y + ty, col = 16 * blockIdx.x + tx;
    int ai = a_col == 1 ? ty : tx, ap = a_col == 1 ? tx : ty;
    int bp = b_col == 1 ? ty : tx, bj = b_col == 1 ? tx : ty;
    int a_at = 16 * blockIdx.y + ai, b_at = 16 * blockIdx.x + bj;
    float sum = with_bias && col < n ? bias[col] : 0.0f;
    for (int start = 0; start < k; start += 16) {
        left[ai][ap] = a_at < m && start + ap < k ? a[first + a_at * a_row + (start + ap) * a_col] : 0.0f;
        right[bp][bj] = b_at < n && start + bp < k ? b[(start + bp) * b_row + b_at * b_col] : 0.0f;
        __syncthreads();
        for (int p = 0; p < 16; p++)
            sum += left[ty][p] * right[p][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
    /*
    ### END SOLUTION
    */
}

// sums[column] = the sum of a column of a (m x n), a thread for each column. About 5 lines.
extern "C" __global__
void column_sums(const float* a, float* sums, int m, int n)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int row = 0; row < m && col < n; row++)
        sum += a[row * n + col];
    if (col < n)
        sums[col] = sum;
    /*
    ### END SOLUTION
    */
}
"""
product = warplab.cuda_kernel(source, "product")
column_sums = warplab.cuda_kernel(source, "column_sums")


def blocks_of(rows, cols):
    """Blocks of 16 x 16 threads for a matrix of so many rows and columns."""
    return -(-cols // 16), -(-rows // 16)


def linear_forward(device, x, first, w, b, y):
    """y = x[first : first + batch] @ w + b. About 4 lines.

    x  (rows, inputs), of which the batch is as many rows as y has, from row `first` on
    w  (inputs, outputs)
    b  (outputs,)
    y  (batch, outputs), to be filled
    """
    ### BEGIN SOLUTION
    (batch, outputs), k = y.shape, x.shape[1]
    sizes, places = (batch, outputs, k), (first * k, k, 1, outputs, 1)
    device.launch(product, blocks_of(batch, outputs), (16, 16), x, w, b, y, *sizes, *places, 1)
    ### END SOLUTION


def linear_backward(device, x, first, w, grad_y, grad_x, grad_w, grad_b):
    """Fill the three gradients. About 8 lines.

    grad_y          (batch, outputs)
    grad_x, grad_w  (batch, inputs) and like w, to be filled
    grad_b          (outputs,), to be filled

    The kernels are a suggestion; write others if you like, in any language.
    """
    ### BEGIN SOLUTION
    (batch, outputs), k = grad_y.shape, x.shape[1]
    sizes, places = (batch, k, outputs), (0, outputs, 1, 1, outputs)
    device.launch(product, blocks_of(batch, k), (16, 16), grad_y, w, w, grad_x, *sizes, *places, 0)
    sizes, places = (k, outputs, batch), (first * k, 1, k, outputs, 1)
    device.launch(product, blocks_of(k, outputs), (16, 16), x, grad_y, w, grad_w, *sizes, *places, 0)
    device.launch(column_sums, -(-outputs // 32), 32, grad_y, grad_b, batch, outputs)
    ### END SOLUTION


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    """Forward and backward, as the judge calls them."""
    linear_forward(device, x, first, w, b, y)
    linear_backward(device, x, first, w, grad_y, grad_x, grad_w, grad_b)


# %% grade="ps13/linear"
grade("ps13/linear", linear)

# %% [markdown]
# ## 2. A bend between two lines
#
# Two linear layers after one another are one linear layer. What bends them here is GELU, as in GPT-2 and
# BERT, in its exact form with the error function: with P the normal distribution function and p its density,
#
# ```python
# P = (1 + erf(x / sqrt(2))) / 2
# p = exp(-x * x / 2) / sqrt(2 * pi)
# y = x * P
# grad_x = grad_y * (P + x * p)
# ```
#
# x is any finite number. Far from zero y is x or 0, and its slope 1 or 0, never NaN. x, y, grad_y and grad_x
# have the same shape, (rows, columns), any numbers from 1 on. Forward reads x and writes y; backward reads x
# and grad_y and writes grad_x, and keeps nothing else of forward: P is cheaper to compute again than to fetch.

# %% solution="activation"
source = r"""
// y = x P(x), a thread for each of n numbers. erff is C++'s error function. About 3 lines.
extern "C" __global__
void gelu_forward(const float* x, float* y, int n)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
    /*
    ### END SOLUTION
    */
}

// grad_x = grad_y (P(x) + x p(x)), a thread for each number. 1 / sqrt(2 pi) is 0.39894228. About 6 lines.
extern "C" __global__
void gelu_backward(const float* x, const float* grad_y, float* grad_x, int n)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // The product rule: P has the slope p, so x P(x) has P + x p. Usual slips: P alone; the slope of GPT-2's approximation, which is off in
    // the fourth digit; 0.5 left out of one of the two; P kept from forward, an array more to write and to read.
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        float below = 0.5f * (1.0f + erff(v * 0.70710678f));
        float density = 0.39894228f * expf(v * v * -0.5f);
        grad_x[i] = grad_y[i] * (below + v * density);
    }
    /*
    ### END SOLUTION
    */
}
"""
gelu_forward = warplab.cuda_kernel(source, "gelu_forward")
gelu_backward = warplab.cuda_kernel(source, "gelu_backward")


def activation_forward(device, x, y):
    """Fill y with GELU of x. About 1 line.

    x, y  float32, of the same shape
    """
    ### BEGIN SOLUTION
    device.launch(gelu_forward, -(-x.size // 128), 128, x, y, x.size)
    ### END SOLUTION


def activation_backward(device, x, grad_y, grad_x):
    """Fill grad_x. About 1 line.

    x, grad_y, grad_x  float32, of the same shape
    """
    ### BEGIN SOLUTION
    device.launch(gelu_backward, -(-x.size // 128), 128, x, grad_y, grad_x, x.size)
    ### END SOLUTION


def activation(device, x, grad_y, y, grad_x):
    """Forward and backward, as the judge calls them."""
    activation_forward(device, x, y)
    activation_backward(device, x, grad_y, grad_x)


# %% grade="ps13/activation"
grade("ps13/activation", activation)

# %% [markdown]
# ## 3. Every row on the same footing
#
# Layer norm takes each row's mean away, divides by its standard deviation, and lets the network choose
# another scale and centre for each column:
#
# ```python
# scale = 1 / sqrt(((x - mean) ** 2).mean() + eps)     # of each row
# hat = (x - mean) * scale
# y = hat * gain + shift
#
# g = grad_y * gain
# grad_x = scale * (g - g.mean() - hat * (g * hat).mean())        # means over the row
# grad_gain = (grad_y * hat).sum(axis=0)                          # sums over all rows
# grad_shift = grad_y.sum(axis=0)
# ```
#
# x, grad_y, y and grad_x are float32 (rows, width), gain, shift and their gradients (width,). There are any
# number of rows from 1 on, of 2 to 1,024 numbers, and eps is above 0. Rows may lie far from zero (around 4,096, with a
# spread of 1) or have no spread at all: then the mean of the squares less the square of the mean is all
# rounding error, and the mean has to be taken away before anything is squared.
#
# The row *sectors* counts 64 rows of 96: a row that is fetched once and kept, in shared memory or in
# registers, earns it all. A second fetch loses points only backward.


# %% solution="layer_norm"
@cuda.jit(device=True)
def warp_sum(value):
    """The sum over the 32 lanes of a warp, in each of them. About 4 lines."""
    ### BEGIN SOLUTION
    for k in range(5):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1 << k)
    return value
    ### END SOLUTION


@cuda.jit
def norm_rows(x, gain, shift, eps, y, kept):
    """Norm one row by one warp, and keep its mean and scale in kept[row]. About 16 lines.

    1. Fetch the row; add up its mean.
    2. Add up the squares of the distances from the mean.
    3. Write the row.
    """
    ### BEGIN SOLUTION
    # Each lane reads from the table only what it put there itself, so nobody has to meet. Usual slips: mean of squares less square of
    # mean, eps outside of the root, width - 1 for width, and numbers of Python's in a kernel, which make sums of 64 bits.
    mine = cuda.shared.array(1024, float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    total = float32(0)
    for col in range(lane, width, 32):
        mine[col] = x[row, col]
        total += mine[col]
    mean = warp_sum(total) / float32(width)
    squares = float32(0)
    for col in range(lane, width, 32):
        squares += (mine[col] - mean) * (mine[col] - mean)
    scale = float32(1) / math.sqrt(warp_sum(squares) / float32(width) + float32(eps))
    for col in range(lane, width, 32):
        y[row, col] = (mine[col] - mean) * scale * gain[col] + shift[col]
    if lane == 0:
        kept[row, 0] = mean
        kept[row, 1] = scale
    ### END SOLUTION


@cuda.jit
def norm_rows_backward(x, gain, grad_y, kept, grad_x):
    """Fill one row of grad_x by one warp. About 16 lines.

    1. Fetch the rows of x and of grad_y; add up g, and g * hat.
    2. Write the row.
    """
    ### BEGIN SOLUTION
    hats = cuda.shared.array(1024, float32)
    gs = cuda.shared.array(1024, float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    mean, scale = kept[row, 0], kept[row, 1]
    plain, with_hat = float32(0), float32(0)
    for col in range(lane, width, 32):
        hats[col] = (x[row, col] - mean) * scale
        gs[col] = grad_y[row, col] * gain[col]
        plain += gs[col]
        with_hat += gs[col] * hats[col]
    plain = warp_sum(plain) / float32(width)
    with_hat = warp_sum(with_hat) / float32(width)
    for col in range(lane, width, 32):
        grad_x[row, col] = scale * (gs[col] - plain - hats[col] * with_hat)
    ### END SOLUTION


@cuda.jit
def norm_columns(x, grad_y, kept, grad_gain, grad_shift):
    """Fill one place of grad_gain and of grad_shift by one thread. About 9 lines."""
    ### BEGIN SOLUTION
    col = cuda.grid(1)
    if col < x.shape[1]:
        by_gain, by_shift = float32(0), float32(0)
        for row in range(x.shape[0]):
            by_gain += grad_y[row, col] * (x[row, col] - kept[row, 0]) * kept[row, 1]
            by_shift += grad_y[row, col]
        grad_gain[col] = by_gain
        grad_shift[col] = by_shift
    ### END SOLUTION


def layer_norm_forward(device, x, gain, shift, eps, y):
    """Fill y, and return what backward needs: mean and scale of each row, (rows, 2). About 3 lines."""
    ### BEGIN SOLUTION
    kept = device.empty((x.shape[0], 2), "float32")
    device.launch(norm_rows, x.shape[0], 32, x, gain, shift, eps, y, kept)
    return kept
    ### END SOLUTION


def layer_norm_backward(device, x, gain, grad_y, kept, grad_x, grad_gain, grad_shift):
    """Fill the three gradients. About 2 lines. The kernels are a suggestion; write others if you like."""
    ### BEGIN SOLUTION
    device.launch(norm_rows_backward, x.shape[0], 32, x, gain, grad_y, kept, grad_x)
    device.launch(norm_columns, -(-x.shape[1] // 32), 32, x, grad_y, kept, grad_gain, grad_shift)
    ### END SOLUTION


def layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift):
    """Forward and backward, as the judge calls them."""
    kept = layer_norm_forward(device, x, gain, shift, eps, y)
    layer_norm_backward(device, x, gain, grad_y, kept, grad_x, grad_gain, grad_shift)


# %% grade="ps13/layer_norm"
grade("ps13/layer_norm", layer_norm)

# %% [markdown]
# ## 4. How wrong, and which way
#
# The network's last layer gives a logit for each class. The loss of a row is minus the logarithm of the
# probability that softmax gives to its label, and `losses[step]` gets the mean over the batch:
#
# ```python
# loss = log(sum(exp(logits))) - logits[label]         # of each row
# losses[step] = loss.mean()
# grad_logits = (softmax(logits) - one_hot(label)) / batch
# ```
#
# `logits` and `grad_logits` are (batch, classes), with 2 or more classes. The labels of the batch are
# `labels[first : first + batch]`, each from 0 to classes - 1. `losses[step]` is 0 at the start, and all other places
# of `losses` stay as they are. Logits lie anywhere between -10,000 and 10,000, where exp overflows, or gives 0 for
# all of a row: take away each row's largest logit first. A label's probability may be 0 in float32, and its loss is
# finite all the same.
#
# Forward and backward want the same sums, so let one launch do both: it never writes softmax, and reads the
# logits at most three times. The row *sectors* counts it for 64 rows of 96.


# %% solution="cross_entropy"
@cuda.jit
def cross_entropy_rows(logits, labels, first, step, losses, grad_logits):
    """The loss and the gradient of one row, by one warp. About 20 lines.

    1. Find the row's largest logit.
    2. Add up the powers of the logits less the largest.
    3. Write the gradient; one lane adds the row's share of the loss.
    """
    ### BEGIN SOLUTION
    # The loss needs no power of its own: log(sum) + most - logit. Usual slips: the logarithm of a probability that is 0 already, the mean
    # forgotten in the gradient, one row's label for another's (`first`), the sum stored by each row over the one before.
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    batch, classes = logits.shape
    most = float32(-math.inf)
    for c in range(lane, classes, 32):
        most = max(most, logits[row, c])
    for k in range(5):
        most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 1 << k))
    total = float32(0)
    for c in range(lane, classes, 32):
        total += math.exp(logits[row, c] - most)
    for k in range(5):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
    label = labels[first + row]
    for c in range(lane, classes, 32):
        share = math.exp(logits[row, c] - most) / total
        if c == label:
            share -= float32(1)
        grad_logits[row, c] = share / float32(batch)
    if lane == 0:
        loss = math.log(total) + (most - logits[row, label])
        cuda.atomic.add(losses, step, loss / float32(batch))
    ### END SOLUTION


def cross_entropy(device, logits, labels, first, step, losses, grad_logits):
    """Add the mean loss to losses[step], which is 0, and fill grad_logits. About 1 line.

    logits, grad_logits  float32 (batch, classes)
    labels               int32 (rows,), those of the batch from `first` on
    losses               float32 (steps,)

    The kernel is a suggestion; write others if you like.
    """
    ### BEGIN SOLUTION
    device.launch(cross_entropy_rows, logits.shape[0], 32, logits, labels, first, step, losses, grad_logits)
    ### END SOLUTION


# %% grade="ps13/cross_entropy"
grade("ps13/cross_entropy", cross_entropy)

# %% [markdown]
# ## 5. A step downhill
#
# AdamW keeps two running means for each parameter, of the gradient and of its square:
#
# ```python
# m = beta1 * m + (1 - beta1) * grad
# v = beta2 * v + (1 - beta2) * grad * grad
# update = (m / (1 - beta1**step)) / (sqrt(v / (1 - beta2**step)) + eps)
# weights = weights - rate * (update + decay * weights)
# ```
#
# `step` counts from 1. Both means begin at 0 and are too small at first, which the divisions by 1 - beta\*\*step
# correct. The decay stands beside the gradient and does not go into the means: that is the W in the name. The
# weights on the right are those before the update.
#
# `weights`, `grads`, `m` and `v` are float32 (n,), any n from 1 on; weights, m and v are changed in place.
# rate, beta1, beta2, eps and decay are numbers, with both betas below 1 and eps above 0. A parameter needs 28
# bytes of traffic, 16 to be read and 12 to be written: the row *bytes* counts them for 4,096 parameters.

# %% solution="adamw"
source = r"""
// One parameter by one thread. correct1 is 1 - beta1^step, correct2 is 1 - beta2^step. About 8 lines.
extern "C" __global__
void adamw_step(float* weights, const float* grads, float* m, float* v, int n, float rate, float beta1,
                float beta2, float eps, float decay, float correct1, float correct2)
{
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // All in one launch, so that nothing is fetched twice. Usual slips: decay added to the gradient (Adam with L2), eps under the root, a
    // step that counts from 0, corrected moments stored in the place of the moments, one correction for both.
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float g = grads[i], w = weights[i];
        float first = beta1 * m[i] + (1.0f - beta1) * g;
        float second = beta2 * v[i] + (1.0f - beta2) * g * g;
        float update = first / correct1 / (sqrtf(second / correct2) + eps);
        m[i] = first;
        v[i] = second;
        weights[i] = w - rate * (update + decay * w);
    }
    /*
    ### END SOLUTION
    */
}
"""
adamw_step = warplab.cuda_kernel(source, "adamw_step")


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    """Update weights, m and v. About 4 lines.

    grads, weights, m, v  float32, of the same shape: task 6 has matrices among them
    """
    ### BEGIN SOLUTION
    n = weights.size
    corrected = 1 - beta1**step, 1 - beta2**step
    device.launch(
        adamw_step, -(-n // 128), 128, weights, grads, m, v, n, rate, beta1, beta2, eps, decay, *corrected
    )
    ### END SOLUTION


# %% grade="ps13/adamw"
grade("ps13/adamw", adamw)

# %% [markdown]
# ## 6. The run
#
# Now the network learns. It has two layers, with GELU between them, and reads small pictures of digits that
# the course draws itself:
#
# ```python
# for step in range(steps):
#     first = step % (pictures // batch) * batch          # batches in turn; a rest that fills none is left out
#     x, label = images[first : first + batch], labels[first : first + batch]
#     before = x @ w1 + b1                                # (batch, hidden)
#     logits = gelu(before) @ w2 + b2                     # (batch, classes)
#     losses[step] = the mean cross-entropy of the batch, before the weights change
#     AdamW on w1, b1, w2 and b2, with their gradients    # its own step counts from 1
# ```
#
# AdamW is that of task 5, with the same numbers for all four, biases too. You make the moments, 0 before the first
# step. There are up to 256 pixels, 128 hidden numbers, 10 classes and 128 pictures in a batch;
# each is any number from 1 on, and there is at least one whole batch.
#
# You may launch the kernels of tasks 1 to 5 one after another: that is a right answer, and 14 points
# come with it. Of up to 6 steps every loss and every weight must lie within 0.002 of what float64 gives. The
# *whole run* is 24 steps of 32 pictures, 64 pixels, 32 hidden numbers and 10 digits, and each of its 24
# losses must lie within 2 % and 0.01 of PyTorch's run in float64 from the same weights.
#
# The other points are for what you fuse. Counted are 4 steps of such a run:
#
# * *launches*: full points up to 6 a step, none from 12 on. Two more are free, whatever the steps, and copies
#   and fills are not counted;
# * *bytes*, as sectors in global memory, read and written, of all kernels, copies and fills: full points up
#   to 3.5 times the least, none from 7 times on. The least: each weight and each of its two moments is read and
#   written once a step, and the batch is read once. Tiles earn most of it, and the rest is what one kernel
#   writes so that the next can read it.
#
# Before you fuse, look at the bars below the check.


# %% solution="train_mlp"
def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    """Train for so many steps. About 25 lines, and what you fuse.

    images  (pictures, pixels)
    labels  (pictures,), int32
    w1, b1  (pixels, hidden) and (hidden,), to be trained where they are
    w2, b2  (hidden, classes) and (classes,), likewise
    losses  (steps,), to be filled; task 4 only adds to losses[step], so it needs zeros there first

    At most 256 arrays can be made in a run: make them before the loop.
    """
    ### BEGIN SOLUTION
    # Five launches a step. A gradient by a weight never reaches memory: the thread that adds it up moves the weight. Whatever belongs to one
    # picture alone, from its logits back to the gradient by its hidden layer, is one block's work, so that logits and probabilities stay on
    # its table. What cannot be fused: a weight may change only when every picture has read it, so learning is a launch of its own.
    # Usual slips: w2 changed before the gradient by the hidden layer has read it; GELU's slope taken at its result; the moments of one
    # weight used for another; 1 - beta ** step for the first step; the rest of the data set trained on.
    before, hidden, by_before = (device.empty((batch, b1.size), "float32") for _ in range(3))
    by_logits, each = device.empty((batch, b2.size), "float32"), device.empty(batch, "float32")
    state = [
        (w, device.zeros(w.shape, "float32"), device.zeros(w.shape, "float32")) for w in (w1, b1, w2, b2)
    ]
    one, two = (*state[0], *state[1]), (*state[2], *state[3])
    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        whole = 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        numbers = [np.float32(x) for x in (rate, beta1, beta2, eps, decay, *whole)]
        device.launch(first_layer, *tiles(before.shape), images, first, w1, b1, before)
        device.launch(
            there_and_back, batch, THREADS, before, labels, first, w2, b2, hidden, by_logits, by_before, each
        )
        device.launch(learn, *tiles(w1.shape), images, first, by_before, *one, *numbers)
        device.launch(learn, *tiles(w2.shape), hidden, 0, by_logits, *two, *numbers)
        device.launch(mean, 1, 1, each, losses, step)


TILE, THREADS = 16, 64
MOST_HIDDEN, MOST_CLASSES = 128, 10


@cuda.jit
def first_layer(images, first, w, b, before):
    """before = images[first : first + batch] @ w + b, in tiles of 16 x 16."""
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    x_tile = cuda.shared.array((TILE, TILE), float32)
    w_tile = cuda.shared.array((TILE, TILE), float32)
    acc = float32(0)
    for start in range(0, w.shape[0], TILE):
        inside = row < before.shape[0] and start + tx < w.shape[0]
        x_tile[ty, tx] = images[first + row, start + tx] if inside else float32(0)
        inside = start + ty < w.shape[0] and col < w.shape[1]
        w_tile[ty, tx] = w[start + ty, col] if inside else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += x_tile[ty, k] * w_tile[k, tx]
        cuda.syncthreads()
    if row < before.shape[0] and col < before.shape[1]:
        before[row, col] = acc + b[col]


@cuda.jit
def there_and_back(before, labels, first, w, b, hidden, by_logits, by_before, picture_losses):
    """A block takes one picture from its hidden layer to its loss and back to the hidden layer's gradient."""
    picture, t = cuda.blockIdx.x, cuda.threadIdx.x
    width, classes = w.shape
    weight = cuda.shared.array((MOST_HIDDEN, MOST_CLASSES), float32)
    active = cuda.shared.array(MOST_HIDDEN, float32)
    slope = cuda.shared.array(MOST_HIDDEN, float32)
    logit = cuda.shared.array(MOST_CLASSES, float32)
    for i in range(t, width * classes, THREADS):
        weight[i // classes, i % classes] = w[i // classes, i % classes]
    for j in range(t, width, THREADS):
        v = before[picture, j]
        below = float32(0.5) * (float32(1) + math.erf(v * float32(0.70710678)))
        active[j] = v * below
        slope[j] = below + v * float32(0.39894228) * math.exp(v * v * float32(-0.5))
        hidden[picture, j] = active[j]
    cuda.syncthreads()
    if t < classes:
        acc = b[t]
        for j in range(width):
            acc += active[j] * weight[j, t]
        logit[t] = acc
    cuda.syncthreads()
    top, total = logit[0], float32(0)
    for c in range(1, classes):
        top = max(top, logit[c])
    for c in range(classes):
        total += math.exp(logit[c] - top)
    label = labels[first + picture]
    if t == 0:
        picture_losses[picture] = math.log(total) + top - logit[label]
    cuda.syncthreads()
    if t < classes:
        share = math.exp(logit[t] - top) / total - float32(1 if t == label else 0)
        logit[t] = share / float32(before.shape[0])
        by_logits[picture, t] = logit[t]
    cuda.syncthreads()
    for j in range(t, width, THREADS):
        acc = float32(0)
        for c in range(classes):
            acc += logit[c] * weight[j, c]
        by_before[picture, j] = acc * slope[j]


@cuda.jit(device=True)
def move(w, m, v, at, grad, rate, beta1, beta2, eps, decay, whole1, whole2):
    """AdamW for one weight; whole1 and whole2 are 1 - beta ** step."""
    m[at] = beta1 * m[at] + (float32(1) - beta1) * grad
    v[at] = beta2 * v[at] + (float32(1) - beta2) * grad * grad
    w[at] -= rate * (m[at] / whole1 / (math.sqrt(v[at] / whole2) + eps) + decay * w[at])


@cuda.jit
def learn(x, first, grad_y, w, m_w, v_w, b, m_b, v_b, rate, beta1, beta2, eps, decay, whole1, whole2):
    """grad_w = x[first : first + batch].T @ grad_y and grad_b, in tiles, each used where it was added up."""
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    x_tile = cuda.shared.array((TILE, TILE), float32)
    g_tile = cuda.shared.array((TILE, TILE), float32)
    of_weight, of_bias = float32(0), float32(0)
    at = cuda.blockIdx.y * TILE + tx
    for start in range(0, grad_y.shape[0], TILE):
        inside = start + ty < grad_y.shape[0]
        x_tile[ty, tx] = x[first + start + ty, at] if inside and at < w.shape[0] else float32(0)
        g_tile[ty, tx] = grad_y[start + ty, col] if inside and col < w.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            of_weight += x_tile[k, ty] * g_tile[k, tx]
            of_bias += g_tile[k, tx]
        cuda.syncthreads()
    if row < w.shape[0] and col < w.shape[1]:
        move(w, m_w, v_w, (row, col), of_weight, rate, beta1, beta2, eps, decay, whole1, whole2)
        if row == 0:
            move(b, m_b, v_b, col, of_bias, rate, beta1, beta2, eps, decay, whole1, whole2)


@cuda.jit
def mean(picture_losses, losses, step):
    """One thread adds up the batch's losses, in their order."""
    acc = float32(0)
    for i in range(picture_losses.size):
        acc += picture_losses[i]
    losses[step] = acc / float32(picture_losses.size)


def tiles(shape):
    return (-(-shape[1] // TILE), -(-shape[0] // TILE)), (TILE, TILE)
    ### END SOLUTION


# %% grade="ps13/train_mlp"
grade("ps13/train_mlp", train_mlp)

# %% [markdown]
# Watch it learn, launch by launch on the engine, with a GPU as without. The wide line is the same run in
# float64. Below it stand fresh pictures that your network takes for another digit. The bars say which kernel
# moves how many bytes in a step, counted on the engine by sectors. Under them stand the arrays of your own
# that one kernel writes and others read, with the bytes of writing and reading them, most first. Fuse where
# you can: the thread that needs a number must be the one that wrote it, or one of its block. GELU's gradient
# can follow the product that writes what it reads. It cannot come before the product that reads its result,
# whose blocks each need numbers of many others.

# %%
with when_written():
    from warplab.figures import train_it_runs

    learnt = train_it_runs.watch(train_mlp)
    display(train_it_runs.mistakes(learnt), train_it_runs.by_kernel(train_it_runs.counted(train_mlp)))

# %% [markdown]
# On a CUDA GPU, 128 steps with 256 pixels, 128 hidden numbers and batches of 128 are timed beside PyTorch's, in
# two rows. Against eager PyTorch you get full points if you take no longer, and none at three times as long;
# against `torch.compile`, full points up to twice as long, and none at six times.

# %% grade="ps13/train_mlp" rubric="time"
grade("ps13/train_mlp", train_mlp, rubric="time")

# %% [markdown]
# ## 7. What came before *
#
# To write, a network has to look back. `q`, `k` and `v` hold sequences of `length` rows, one after the other,
# and a row attends to itself and to the rows of its own sequence before it:
#
# ```python
# scores = q @ k.T / sqrt(width)                       # of one sequence, -inf for rows that come later
# p = softmax(scores)                                  # over each row
# out = p @ v
#
# grad_v = p.T @ grad_out
# grad_p = grad_out @ v.T
# grad_scores = p * (grad_p - (p * grad_p).sum(axis=1))
# grad_q = grad_scores @ k / sqrt(width)
# grad_k = grad_scores.T @ q / sqrt(width)
# ```
#
# All arrays are (sequences * length, width), with a length of 1 to 64 and a width of 1 to 64; it is one head.
# Scores may lie far from zero. (p * grad_p).sum(axis=1) is (grad_out * out).sum(axis=1), a number a row.
#
# Softmax needs its largest score and its sum, two numbers a row; with these p can be worked out again
# wherever it is needed. So do not put the square of p into memory: the row *memory* counts the bytes that you
# allocate for two sequences of 32 rows, 4 wide.


# %% solution="attention"
@cuda.jit
def attend(q, k, v, length, out, kept):
    """One row of `out` by one warp; its largest score and the sum of the powers into kept[row]. About 22 lines."""
    ### BEGIN SOLUTION
    powers = cuda.shared.array(64, float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, q.shape[1]
    start = row // length * length
    root = math.sqrt(float32(width))
    most = float32(-math.inf)
    for other in range(start + lane, row + 1, 32):
        score = float32(0)
        for d in range(width):
            score += q[row, d] * k[other, d]
        powers[other - start] = score / root
        most = max(most, score / root)
    for i in range(5):
        most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 1 << i))
    total = float32(0)
    for other in range(start + lane, row + 1, 32):
        powers[other - start] = math.exp(powers[other - start] - most)
        total += powers[other - start]
    total = warp_sum(total)
    cuda.syncwarp()
    for d in range(lane, width, 32):
        mean = float32(0)
        for other in range(start, row + 1):
            mean += powers[other - start] * v[other, d]
        out[row, d] = mean / total
    if lane == 0:
        kept[row, 0] = most
        kept[row, 1] = total
    ### END SOLUTION


@cuda.jit
def attend_queries(q, k, v, grad_out, length, out, kept, inner, grad_q):
    """One row of grad_q by one warp; (grad_out * out).sum() of the row into inner[row]. About 22 lines."""
    ### BEGIN SOLUTION
    by_score = cuda.shared.array(64, float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, q.shape[1]
    start = row // length * length
    root = math.sqrt(float32(width))
    both = float32(0)
    for d in range(lane, width, 32):
        both += grad_out[row, d] * out[row, d]
    both = warp_sum(both)
    if lane == 0:
        inner[row] = both
    for other in range(start + lane, row + 1, 32):
        score, by_p = float32(0), float32(0)
        for d in range(width):
            score += q[row, d] * k[other, d]
            by_p += grad_out[row, d] * v[other, d]
        p = math.exp(score / root - kept[row, 0]) / kept[row, 1]
        by_score[other - start] = p * (by_p - both) / root
    cuda.syncwarp()
    for d in range(lane, width, 32):
        total = float32(0)
        for other in range(start, row + 1):
            total += by_score[other - start] * k[other, d]
        grad_q[row, d] = total
    ### END SOLUTION


@cuda.jit
def attend_keys(q, k, v, grad_out, length, kept, inner, grad_k, grad_v):
    """One row of grad_k and of grad_v by one warp: from this row and those after it. About 24 lines."""
    ### BEGIN SOLUTION
    # A key is looked at by its own row and by all that come after it in its sequence. Usual slips: rows before it; the sequence's end
    # missed; the root twice or not at all; softmax's gradient without the row's inner product.
    ps = cuda.shared.array(64, float32)
    by_score = cuda.shared.array(64, float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, q.shape[1]
    end = (row // length + 1) * length
    root = math.sqrt(float32(width))
    for other in range(row + lane, end, 32):
        score, by_p = float32(0), float32(0)
        for d in range(width):
            score += q[other, d] * k[row, d]
            by_p += grad_out[other, d] * v[row, d]
        p = math.exp(score / root - kept[other, 0]) / kept[other, 1]
        ps[other - row] = p
        by_score[other - row] = p * (by_p - inner[other]) / root
    cuda.syncwarp()
    for d in range(lane, width, 32):
        by_k, by_v = float32(0), float32(0)
        for other in range(row, end):
            by_k += by_score[other - row] * q[other, d]
            by_v += ps[other - row] * grad_out[other, d]
        grad_k[row, d] = by_k
        grad_v[row, d] = by_v
    ### END SOLUTION


def attention_forward(device, q, k, v, length, out):
    """Fill out, and return what backward needs of the softmax: (rows, 2). About 3 lines."""
    ### BEGIN SOLUTION
    kept = device.empty((q.shape[0], 2), "float32")
    device.launch(attend, q.shape[0], 32, q, k, v, length, out, kept)
    return kept
    ### END SOLUTION


def attention_backward(device, q, k, v, grad_out, length, out, kept, grad_q, grad_k, grad_v):
    """Fill the three gradients. About 4 lines. The kernels are a suggestion; write others if you like."""
    ### BEGIN SOLUTION
    rows = q.shape[0]
    inner = device.empty(rows, "float32")
    device.launch(attend_queries, rows, 32, q, k, v, grad_out, length, out, kept, inner, grad_q)
    device.launch(attend_keys, rows, 32, q, k, v, grad_out, length, kept, inner, grad_k, grad_v)
    ### END SOLUTION


def attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v):
    """Forward and backward, as the judge calls them."""
    kept = attention_forward(device, q, k, v, length, out)
    attention_backward(device, q, k, v, grad_out, length, out, kept, grad_q, grad_k, grad_v)


# %% grade="ps13/attention"
grade("ps13/attention", attention)

# %% [markdown]
# ## 8. A row for each letter *
#
# A text comes as numbers, one for each character, and the network's first layer looks up a row of a table:
#
# ```python
# y[t] = table[tokens[first + t]]
# grad_table[n] = sum of grad_y[t] over all t with tokens[first + t] == n      # 0 for a token that never comes
# ```
#
# `tokens` is int32, each from 0 to words - 1, `table` and `grad_table` are (words, width), `y` and `grad_y`
# are (batch, width). All sizes are any numbers from 1 on. A letter comes many times in a batch, so that many
# threads want to add to one row: let atomics do it, or let each row of the table collect its own. What
# grad_table holds before is of no use. The row *sectors* counts 128 tokens of 32, 32 wide.


# %% solution="embedding"
@cuda.jit
def look_up(tokens, first, table, y):
    """One row of y by one warp. About 4 lines."""
    ### BEGIN SOLUTION
    t, lane = cuda.blockIdx.x, cuda.threadIdx.x
    token = tokens[first + t]
    for d in range(lane, table.shape[1], 32):
        y[t, d] = table[token, d]
    ### END SOLUTION


@cuda.jit
def hand_back(tokens, first, grad_y, grad_table):
    """Add one row of grad_y to its token's row, by one warp. About 4 lines."""
    ### BEGIN SOLUTION
    # The same token in two blocks at once is a race for a plain addition. The order of atomics is open, so that the last bits of a sum may
    # change from run to run on a GPU. Usual slips: grad_table not cleared, `first` left out, a store for the addition.
    t, lane = cuda.blockIdx.x, cuda.threadIdx.x
    token = tokens[first + t]
    for d in range(lane, grad_y.shape[1], 32):
        cuda.atomic.add(grad_table, (token, d), grad_y[t, d])
    ### END SOLUTION


def embedding_forward(device, tokens, first, table, y):
    """Fill y. About 1 line."""
    ### BEGIN SOLUTION
    device.launch(look_up, y.shape[0], 32, tokens, first, table, y)
    ### END SOLUTION


def embedding_backward(device, tokens, first, grad_y, grad_table):
    """Fill grad_table. About 2 lines. The kernels are a suggestion; write others if you like."""
    ### BEGIN SOLUTION
    device.fill(grad_table, 0)
    device.launch(hand_back, grad_y.shape[0], 32, tokens, first, grad_y, grad_table)
    ### END SOLUTION


def embedding(device, tokens, first, table, grad_y, y, grad_table):
    """Forward and backward, as the judge calls them."""
    embedding_forward(device, tokens, first, table, y)
    embedding_backward(device, tokens, first, grad_y, grad_table)


# %% grade="ps13/embedding"
grade("ps13/embedding", embedding)

# %% [markdown]
# ## 9. It writes *
#
# A transformer of one block reads a rhyme letter by letter: Jane Taylor's "The Star", printed in 1806, which is
# in the public domain. At each letter it says which letter follows.
#
# ```python
# rows = sequences * length
# for step in range(steps):
#     first = step * 37 % (tokens.size - rows)            # each step begins elsewhere in the text
#     token, label = tokens[first : first + rows], tokens[first + 1 : first + 1 + rows]
#     x = table[token] + places[row % length]             # (rows, width), of each row its place in its sequence
#     q, k, v = x @ wq, x @ wk, x @ wv                    # without a bias
#     y = x + attention(q, k, v)                          # task 7, in sequences of `length` rows
#     before = layer_norm(y, gain, shift) @ w1 + b1       # task 3, with eps 1e-5
#     z = y + gelu(before) @ w2 + b2
#     logits = z @ wo + bo                                # (rows, letters)
#     losses[step] = the mean cross-entropy, before the weights change
#     AdamW on all thirteen, with their gradients         # its own step counts from 1
# ```
#
# All of it is there already, in tasks 1 to 8, but for three sums: x with the places, and each `x +` forward and
# backward. Where a number is used twice, its gradients are added: x goes into q, k, v and y, and y into the
# norm and into z. `eps` is AdamW's alone, and moments are 0 before the first step.
#
# Length and width are at most 64, hidden numbers 128, letters 64, each any number from 1 on; the text has more
# letters than a step's rows. Of up to 3 steps every loss and every weight must lie within 0.002 of what float64
# gives; of the *whole run*, 8 steps of 2 sequences of 16 letters, each loss within 2 % and 0.01.


# %% solution="train_text"
@cuda.jit
def add(a, b, out):
    """out = a + b, one place of each by one thread. About 3 lines."""
    ### BEGIN SOLUTION
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[row, col] + b[row, col]
    ### END SOLUTION


@cuda.jit
def add_places(x, places):
    """x[row] += places[row % length], one row by one warp. About 3 lines."""
    ### BEGIN SOLUTION
    row = cuda.blockIdx.x
    for d in range(cuda.threadIdx.x, x.shape[1], 32):
        x[row, d] += places[row % places.shape[0], d]
    ### END SOLUTION


@cuda.jit
def sum_places(grad_x, grad_places):
    """grad_places[t] = the sum of grad_x over the rows at place t, one place by one warp. About 5 lines."""
    ### BEGIN SOLUTION
    place = cuda.blockIdx.x
    for d in range(cuda.threadIdx.x, grad_x.shape[1], 32):
        total = float32(0)
        for row in range(place, grad_x.shape[0], grad_places.shape[0]):
            total += grad_x[row, d]
        grad_places[place, d] = total
    ### END SOLUTION


def train_text(device, tokens, length, sequences, steps, rate, beta1, beta2, eps, decay, *weights_and_losses):
    """Train for so many steps. About 60 lines, of which most call what you have.

    tokens  (letters of the text,), int32

    Then come the weights, which are trained where they are, and losses (steps,), to be filled:
    table (letters, width), places (length, width), wq, wk, wv (width, width), gain, shift (width,),
    w1 (width, hidden), b1 (hidden,), w2 (hidden, width), b2 (width,), wo (width, letters), bo (letters,)

    wq, wk and wv have no bias: pass zeros to task 1, and ignore the gradient that it writes.
    At most 256 arrays can be made in a run: make yours before the loop. Those few that tasks 3 and 7 make in
    each step, for themselves, may stay.
    """
    *weights, losses = weights_and_losses
    table, places, wq, wk, wv, gain, shift, w1, b1, w2, b2, wo, bo = weights
    rows, width = sequences * length, table.shape[1]
    ### BEGIN SOLUTION
    # A gradient that comes back along `x +` is the gradient of both: by_z is y's too, and by_y is x's, and what comes back through the
    # branch is added to it. Usual slips: one of the four gradients by x left out; labels that are the letters themselves; places taken
    # by the row of the batch; a bias of q, k or v that learns; a sum written where its summand is still wanted.
    grads = [device.empty(w.shape, "float32") for w in weights]
    moments = [[device.zeros(w.shape, "float32") for _ in "mv"] for w in weights]
    g_table, g_places, g_q, g_k, g_v, g_gain, g_shift, g_1, g_b1, g_2, g_b2, g_o, g_bo = grads
    none, unused = device.zeros(width, "float32"), device.empty(width, "float32")
    x, q, k, v, seen, y, normed, branch, z = (device.empty((rows, width), "float32") for _ in range(9))
    by_z, by_normed, by_y, by_x, by_q, by_k, by_v = (device.empty((rows, width), "float32") for _ in range(7))
    before, active, by_active, by_before = (device.empty((rows, b1.size), "float32") for _ in range(4))
    logits, by_logits = (device.empty((rows, bo.size), "float32") for _ in range(2))

    def plus(a, b, out):
        device.launch(add, (-(-width // 32), -(-rows // 8)), (32, 8), a, b, out)

    device.fill(losses, 0)  # my cross_entropy adds to it
    for step in range(steps):
        first = step * 37 % (tokens.size - rows)
        embedding_forward(device, tokens, first, table, x)
        device.launch(add_places, rows, 32, x, places)
        for w, out in (wq, q), (wk, k), (wv, v):
            linear_forward(device, x, 0, w, none, out)
        powers = attention_forward(device, q, k, v, length, seen)
        plus(x, seen, y)
        scales = layer_norm_forward(device, y, gain, shift, 1e-5, normed)
        linear_forward(device, normed, 0, w1, b1, before)
        activation_forward(device, before, active)
        linear_forward(device, active, 0, w2, b2, branch)
        plus(y, branch, z)
        linear_forward(device, z, 0, wo, bo, logits)
        cross_entropy(device, logits, tokens, first + 1, step, losses, by_logits)

        linear_backward(device, z, 0, wo, by_logits, by_z, g_o, g_bo)
        linear_backward(device, active, 0, w2, by_z, by_active, g_2, g_b2)
        activation_backward(device, before, by_active, by_before)
        linear_backward(device, normed, 0, w1, by_before, by_normed, g_1, g_b1)
        layer_norm_backward(device, y, gain, by_normed, scales, by_y, g_gain, g_shift)
        plus(by_y, by_z, by_y)
        attention_backward(device, q, k, v, by_y, length, seen, powers, by_q, by_k, by_v)
        for w, by, g in (wq, by_q, g_q), (wk, by_k, g_k), (wv, by_v, g_v):
            linear_backward(device, x, 0, w, by, by_x, g, unused)
            plus(by_y, by_x, by_y)  # from here on the gradient by x
        device.launch(sum_places, length, 32, by_y, g_places)
        embedding_backward(device, tokens, first, by_y, g_table)
        for w, g, (m, s) in zip(weights, grads, moments, strict=True):
            adamw(device, g, step + 1, rate, beta1, beta2, eps, decay, w, m, s)
    ### END SOLUTION


# %% grade="ps13/train_text"
grade("ps13/train_text", train_text)

# %% [markdown]
# Let it read longer, and see what it writes on the way. After 60 steps of 64 letters it knows how often letters
# follow one another. Words come with more letters a step and more parameters, half a minute's work or more:
# `watch_text(train_text, sequences=16, width=64, hidden=128)`.

# %%
with when_written():
    from warplab.figures import train_it_runs

    read = train_it_runs.watch_text(train_text, steps=60)
    print(train_it_runs.sample(read.weights))

# %% [markdown]
# ## One product climbed
#
# The last step is the product that your network trains with. Which earlier step is built like it? Count it, and compare the
# passes of the two: what in its tables makes the difference, if there is one? Then, if you like, put the best of your versions in its place and count again. The second cell shows the whole log and
# prints its table. Put the table into the cell below it: that is what is handed in, and no points depend on it.

# %%
n = 256 if warplab.device().kind == "simt" else 2048
a, b, c = np.random.default_rng(0).standard_normal((3, n, n), np.float32)
with when_written():
    launch = product[blocks_of(n, n), (16, 16)]
    climb("the one that trains", launch, a, b, b, c, n, n, n, 0, n, 1, n, 1, 0, note=...)

# %%
climb()

# %% [markdown]
# *The table, in the place of this line.*

# %% [markdown]
# ## 10. Predict and explain
#
# A network of two layers, 256 to 128 to 10 with a GELU between, takes a training step. The cell below adds up
# the fewest bytes that each part of the step moves, if every kernel reads and writes each of its arrays once.
#
# 1. **Predict**, in the place of the `...`: which part moves most at a batch of 16, and which at a batch of
#    4,096? Whose bytes do not change with the batch at all? The parts are `"linear forward"`, `"linear
#    backward"`, `"activation"` (there and back), `"cross entropy"` and `"AdamW"`.
# 2. **Explain** the difference from the shapes of what each part reads and writes.
# 3. Which two kernels would you fuse first at a batch of 4,096, how many bytes would that save, and why does
#    the same fusion save next to nothing at a batch of 16?
#
# About 150 words.


# %%
def bytes_of_a_step(batch, inputs=256, hidden=128, outputs=10):
    """{part of the step: bytes}, with each array read or written once by each kernel that needs it."""
    weights = inputs * hidden + hidden * outputs + hidden + outputs
    layers = ((inputs, hidden), (hidden, outputs))
    forward = sum(batch * (i + o) + i * o + o for i, o in layers)
    by_weights = sum(batch * (i + 2 * o) + i * o + o for i, o in layers)
    by_batch = batch * (hidden + outputs) + hidden * outputs  # nobody needs the gradient by the pictures
    counted = {
        "linear forward": forward,
        "linear backward": by_weights + by_batch,
        "activation": 5 * batch * hidden,
        "cross entropy": 2 * batch * outputs,
        "AdamW": 7 * weights,
    }
    return {part: 4 * numbers for part, numbers in counted.items()}


def part(what):
    few, many = bytes_of_a_step(16), bytes_of_a_step(4096)
    if what == "never changes":
        return next(name for name in few if few[name] == many[name])
    moved = bytes_of_a_step(what[1])
    return max(moved, key=moved.get)


if predict(
    {("moves most", 16): ..., ("moves most", 4096): ..., "never changes": ...}, part, found="computed"
):
    for batch in 16, 4096:
        moved = bytes_of_a_step(batch)
        print(f"a batch of {batch:,}: {sum(moved.values()):,} bytes")
        for name, count in moved.items():
            print(f"  {name:16} {count:>12,}  {count / sum(moved.values()):.0%}")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** AdamW moves 28 bytes for each of 34,186 parameters, 957,208, whatever the batch is, since it reads weights,
# gradients and moments and no activation. At a batch of 16 that is 70 % of the step; at 4,096 it is 3 %, and the linear
# layers and the activation, whose arrays have a row for each picture, move nearly all. The weights are read by the products in either case, but once for the whole batch.
#
# At 4,096 I would put GELU into the end of the first layer's product: the product has x in a register and writes x and y, so that
# forward the activation need not read x again, one array of 4,096 x 128 numbers, 2.1 MB. In the same way GELU's gradient goes into
# the end of the product that makes grad_y, which saves writing grad_y and reading it again, 4.2 MB. At a batch of 16 the same arrays have 8,192 bytes each, beside 957,208 of AdamW,
# so only AdamW matters, and it is fused already.
#
# **Marking.** 1 point: a prediction, or a wrong one corrected. 2 points: AdamW goes with the parameters, the rest with the batch. 1 point: a fusion
# with its bytes. 1 point: why it does not matter at 16.
# ### END SOLUTION
