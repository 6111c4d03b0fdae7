"""A small tensor library as a course has students write it, and a training step with it: many launches of
generic kernels, each on a handful of elements. Shapes and strides are arrays that the kernels read.
"""

import math

import numpy as np
from numba import cuda, float64, int32

THREADS, TILE, MOST_DIMS = 32, 8, 4


@cuda.jit(device=True)
def to_index(number, shape, index):
    for k in range(len(shape)):
        d = len(shape) - 1 - k
        index[d] = number % shape[d]
        number //= shape[d]


@cuda.jit(device=True)
def position(index, shape, strides):
    """Where an element lies; a dimension of 1 is broadcast."""
    at = 0
    for d in range(len(shape)):
        if shape[d] != 1:
            at += index[d] * strides[d]
    return at


class Tensor:
    """Elements on the device, with shape and strides in elements. All tensors here have two dimensions."""

    def __init__(self, storage, shape, strides):
        self.storage, self.shape = storage, tuple(shape)
        self.strides = tuple(strides)

    @classmethod
    def of(cls, array):
        array = np.ascontiguousarray(array, np.float64)
        return cls(cuda.to_device(array.ravel()), array.shape, (array.shape[1], 1))

    @property
    def parts(self):
        return self.storage, np.array(self.shape, np.int32), np.array(self.strides, np.int32)

    @property
    def transposed(self):
        return Tensor(self.storage, self.shape[::-1], self.strides[::-1])

    def numpy(self):
        return self.storage.copy_to_host().reshape(self.shape)


def zipped(function):
    """The function of two tensors that applies one of two numbers to each pair of elements."""
    function = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(out, out_shape, out_strides, a, a_shape, a_strides, b, b_shape, b_strides):
        i = cuda.grid(1)
        if i < out.size:
            index = cuda.local.array(MOST_DIMS, int32)
            to_index(i, out_shape, index)
            left = a[position(index, a_shape, a_strides)]
            right = b[position(index, b_shape, b_strides)]
            out[position(index, out_shape, out_strides)] = function(left, right)

    def call(a, b):
        out = Tensor.of(np.zeros(np.broadcast_shapes(a.shape, b.shape)))
        kernel[-(-out.storage.size // THREADS), THREADS](*out.parts, *a.parts, *b.parts)
        return out

    return call


@cuda.jit
def sum_kernel(out, a, a_shape, a_strides):
    """A block sums a column."""
    partial = cuda.shared.array(THREADS, float64)
    t, column = cuda.threadIdx.x, cuda.blockIdx.x
    index = cuda.local.array(MOST_DIMS, int32)
    index[0], index[1] = t, column
    partial[t] = a[position(index, a_shape, a_strides)] if t < a_shape[0] else 0.0
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[column] = partial[0]


@cuda.jit
def product_kernel(out, out_shape, out_strides, a, a_shape, a_strides, b, b_shape, b_strides):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    row, column = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for start in range(0, a_shape[1], TILE):
        tile_a[i, j] = tile_b[i, j] = 0.0
        if row < a_shape[0] and start + j < a_shape[1]:
            tile_a[i, j] = a[row * a_strides[0] + (start + j) * a_strides[1]]
        if start + i < b_shape[0] and column < b_shape[1]:
            tile_b[i, j] = b[(start + i) * b_strides[0] + column * b_strides[1]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[i, k] * tile_b[k, j]
        cuda.syncthreads()
    if row < out_shape[0] and column < out_shape[1]:
        out[row * out_strides[0] + column * out_strides[1]] = total


def summed(a):
    """Over the first dimension, of at most THREADS elements."""
    out = Tensor.of(np.zeros((1, a.shape[1])))
    sum_kernel[a.shape[1], THREADS](out.storage, *a.parts)
    return out


def product(a, b):
    out = Tensor.of(np.zeros((a.shape[0], b.shape[1])))
    grid = -(-out.shape[0] // TILE), -(-out.shape[1] // TILE)
    product_kernel[grid, (TILE, TILE)](*out.parts, *a.parts, *b.parts)
    return out


@zipped
def add(a, b):
    return a + b


@zipped
def subtract(a, b):
    return a - b


@zipped
def multiply(a, b):
    return a * b


@zipped
def larger(a, b):
    return max(a, b)


@zipped
def passes(gradient, before):
    return gradient if before > 0 else 0.0


@zipped
def sigmoid(a, _):
    return 1 / (1 + math.exp(-a))


class Network:
    """Two layers that say on which side of a curve points lie: ``points`` by 2 inputs, ``hidden`` neurons."""

    def __init__(self, points=16, hidden=10):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((points, 2))
        self.x, self.y = Tensor.of(x), Tensor.of(x[:, :1] * x[:, 1:] > 0)
        self.weights = [
            Tensor.of(rng.standard_normal(shape)) for shape in ((2, hidden), (1, hidden), (hidden, 1), (1, 1))
        ]
        self.zero, self.rate = Tensor.of([[0]]), Tensor.of([[1 / points]])

    def step(self):
        """One step of gradient descent; the largest error before it is returned."""
        w1, b1, w2, b2 = self.weights
        before = add(product(self.x, w1), b1)
        hidden = larger(before, self.zero)
        error = subtract(sigmoid(add(product(hidden, w2), b2), self.zero), self.y)
        back = passes(product(error, w2.transposed), before)
        gradients = (
            product(self.x.transposed, back),
            summed(back),
            product(hidden.transposed, error),
            summed(error),
        )
        self.weights = [subtract(w, multiply(g, self.rate)) for w, g in zip(self.weights, gradients)]
        return float(np.abs(error.numpy()).max())
