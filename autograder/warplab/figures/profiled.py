"""Kernels with the memory accesses of published kernels whose cache hit rates others profiled.

Each kernel accesses the addresses of the published one in its order, without the computation in between.
``CASES`` has the sizes at which they run here: the published ones, or smaller ones on a smaller device.
"""

import numpy as np
from numba import cuda, float32

from warplab.evidence.experiments.kernels import matmul_naive, transpose_naive, transpose_padded
from warplab.figures.kernels import tiled
from warplab.hardware import specs
from warplab.simt.counters.caches import CacheModel
from warplab.simt.watched import watched

f32 = np.float32


@cuda.jit
def product_down(a, b, c):
    """A product with one thread an element; neighbouring threads have neighbours in a column."""
    i, j = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@cuda.jit
def product_in_strips(a, b, c):
    """A product in tiles of 32 x 32, with blocks in strips of four columns. All threads of a block store
    their results to one address, as in the published kernel.
    """
    tile = cuda.shared.array((2, 32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    block = cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x
    strip, place = block // (4 * cuda.gridDim.y), block % (4 * cuda.gridDim.y)
    column, row = 4 * strip + place % 4, place // 4
    total = float32(0)
    for k in range(0, a.shape[1], 32):
        tile[0, y, x], tile[1, y, x] = a[32 * row + y, k + x], b[k + y, 32 * column + x]
        cuda.syncthreads()
        total += tile[0, x, y] * tile[1, y, x]
        cuda.syncthreads()
    c[column, row] = total


def product_in_large_tiles(threads, depth, wide=1, adds=False):
    """A product in tiles of 64 x 64 results, ``depth`` deep.

    A thread's results are in one column, or ``wide`` x ``wide`` neighbours, stored one by one.
    """
    across = 64 // wide

    @cuda.jit
    def kernel(a, b, c):
        kept = cuda.shared.array(0, float32)
        t, top, left = cuda.threadIdx.x, 64 * cuda.blockIdx.y, 64 * cuda.blockIdx.x
        total = float32(0)
        for k in range(0, a.shape[1], depth):
            for at in range(t, 64 * depth, threads):
                total += a[top + at // depth, k + at % depth]
            for at in range(t, 64 * depth, threads):
                total += b[k + at // 64, left + at % 64]
        kept[t] = total
        cuda.syncthreads()
        each = 64 * 64 // threads // wide
        for m in range(each):
            for n in range(wide):
                i, j = top + t // across * each + m, left + t % across * wide + n
                c[i, j] = kept[t ^ 1] + (c[i, j] if adds else float32(0))

    return kernel


@cuda.jit
def softmax_by_thread(x, out):
    """One thread a row; exponentials are kept in ``out``."""
    i = cuda.grid(1)
    most = total = float32(0)
    for k in range(x.shape[1]):
        most = max(most, x[i, k])
    for k in range(x.shape[1]):
        power = x[i, k] - most
        out[i, k] = power
        total += power
    for k in range(x.shape[1]):
        out[i, k] /= total


@cuda.jit
def softmax_by_block(x, out):
    """One block a row; exponentials are kept in ``out``."""
    kept = cuda.shared.array(4, float32)
    i, t, step = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    total = float32(0)
    for k in range(t, x.shape[1], step):
        total += x[i, k]
    kept[t % 4] = total
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        out[i, k] = x[i, k] - kept[0]
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        out[i, k] *= kept[1]


@cuda.jit
def softmax_read_twice(x, out):
    """One block a row: a first reading for the sum, a second for the results."""
    kept = cuda.shared.array(16, float32)
    i, t, step = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    total = float32(0)
    for k in range(t, x.shape[1], step):
        total += x[i, k]
    kept[t % 16] = total
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        out[i, k] = x[i, k] * kept[0]


@cuda.jit
def softmax_read_once(x, out):
    """One block a row, which it keeps in shared memory."""
    kept = cuda.shared.array(1040, float32)
    i, t, step = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    for k in range(t, x.shape[1], step):
        kept[k] = x[i, k]
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        out[i, k] = kept[x.shape[1] - 1 - k]


@cuda.jit
def layer_norm_by_thread(x, scale, shift, out):
    """One thread a row: mean, variance, results."""
    i = cuda.grid(1)
    total = spread = float32(0)
    for k in range(x.shape[1]):
        total += x[i, k]
    for k in range(x.shape[1]):
        spread += (x[i, k] - total) * (x[i, k] - total)
    for k in range(x.shape[1]):
        out[i, k] = (x[i, k] - total) * spread * scale[k] + shift[k]


@cuda.jit
def layer_norm_by_block(x, scale, shift, out):
    """One block a row: mean, variance, results."""
    kept = cuda.shared.array(8, float32)
    i, t, step = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    total = spread = float32(0)
    for k in range(t, x.shape[1], step):
        total += x[i, k]
    kept[t % 8] = total
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        spread += x[i, k] - kept[0]
    cuda.syncthreads()
    kept[t % 8] = spread
    cuda.syncthreads()
    for k in range(t, x.shape[1], step):
        out[i, k] = x[i, k] * kept[0] * scale[k] + shift[k]


@cuda.jit
def rms_norm_by_thread(x, scale, out):
    """One thread a row: the sum of squares, then the results."""
    i = cuda.grid(1)
    total = float32(0)
    for k in range(x.shape[1]):
        total += x[i, k] * x[i, k]
    for k in range(x.shape[1]):
        out[i, k] = x[i, k] * total * scale[k]


@cuda.jit
def convolution(x, weights, out):
    """One thread a pixel of one channel: 3 x 3 with a border of one."""
    j, i = cuda.grid(2)
    channel = cuda.blockIdx.z
    total = float32(0)
    if i < x.shape[1] and j < x.shape[2]:
        for c in range(x.shape[0]):
            for di in range(3):
                for dj in range(3):
                    y, z = i + di - 1, j + dj - 1
                    if 0 <= y < x.shape[1] and 0 <= z < x.shape[2]:
                        total += x[c, y, z] * weights[channel, c, di, dj]
        out[channel, i, j] = total


def ones(*shape):
    return np.ones(shape, f32)


def in_squares(kernel, side, rows, columns, depth, down=False):
    """``rows`` x ``depth`` times ``depth`` x ``columns``."""
    grid = (columns // side, rows // side)
    launcher = kernel[grid[::-1] if down else grid, (side, side)]
    return launcher, (ones(rows, depth), ones(depth, columns), ones(rows, columns))


def in_large(rows, side, threads, deep, shared, **more):
    """A product in large tiles. shared: bytes of shared memory, so that as many blocks fit on an SM as in the
    published launch."""
    kernel = product_in_large_tiles(threads, deep, **more)
    grid = (side // 64, rows // 64)
    return kernel[grid, threads, 0, shared], (ones(rows, side), ones(side, side), ones(rows, side))


def norm(kernel, grid, threads, rows, columns, factors):
    x = ones(rows, columns)
    return kernel[grid, threads], (x, *ones(factors, columns), ones(rows, columns))


# Name in profiled.yml: how many times smaller the device is, and the launch.
CASES = {
    "product, 4096": (4, lambda: in_squares(matmul_naive, 16, 64, 1024, 1024)),
    "product, 512": (2, lambda: in_squares(matmul_naive, 16, 256, 256, 256)),
    "product, 4092": (8, lambda: in_squares(matmul_naive, 32, 160, 512, 512)),
    "product down, 4092": (8, lambda: in_squares(product_down, 32, 512, 160, 512, down=True)),
    "tiles of 16, 512": (2, lambda: in_squares(tiled(16), 16, 256, 256, 256)),
    "tiles of 32, 4096": (1, lambda: in_squares(tiled(32), 32, 128, 4096, 1024)),
    "tiles of 32, 4096, two blocks": (4, lambda: in_squares(tiled(32), 32, 256, 1024, 1024)),
    "tiles of 32, 2048": (2, lambda: in_squares(tiled(32), 32, 1024, 1024, 1024)),
    "tiles of 32, 1024": (1, lambda: in_squares(tiled(32), 32, 1024, 1024, 1024)),
    "tiles of 32, 1024 by 128": (1, lambda: in_squares(tiled(32), 32, 1024, 1024, 128)),
    "strips, 4096": (1, lambda: in_squares(product_in_strips, 32, 2048, 256, 1024)),
    "strips, 2048": (2, lambda: in_squares(product_in_strips, 32, 1024, 1024, 1024)),
    "strips, 1024": (1, lambda: in_squares(product_in_strips, 32, 1024, 1024, 1024)),
    "strips, 1024 by 128": (1, lambda: in_squares(product_in_strips, 32, 1024, 1024, 128)),
    "tiles of 64, 8 deep": (2, lambda: in_large(512, 2048, 256, 8, 23000, wide=4)),
    "tiles of 64, 16 deep": (2, lambda: in_large(512, 2048, 128, 16, 23000, wide=4)),
    "tiles of 64, 512 threads": (4, lambda: in_large(1024, 1024, 512, 8, 80000, adds=True)),
    "softmax, thread a row": (1, lambda: norm(softmax_by_thread, 40, 256, 10240, 256, 0)),
    "softmax, block a row": (1, lambda: norm(softmax_by_block, 2016, 128, 2016, 1024, 0)),
    "softmax, read twice": (1, lambda: norm(softmax_read_twice, 1008, 256, 1008, 1024, 0)),
    "softmax, read once": (1, lambda: norm(softmax_read_once, 1008, 256, 1008, 1024, 0)),
    "layer norm, thread a row": (1, lambda: norm(layer_norm_by_thread, 40, 256, 10240, 256, 2)),
    "layer norm, block a row": (1, lambda: norm(layer_norm_by_block, 756, 256, 756, 10240, 2)),
    "RMS norm, thread a row": (1, lambda: norm(rms_norm_by_thread, 4, 256, 1024, 1024, 1)),
    "convolution": (
        1,
        lambda: (
            convolution[(4, 4, 32), (16, 16)],
            (ones(16, 56, 56), ones(32, 16, 3, 3), ones(32, 56, 56)),
        ),
    ),
}


def square(kernel, side, n):
    return lambda: in_squares(kernel, side, n, n, n)


def transposed(kernel, n):
    return lambda: (kernel[(n // 32, n // 32), (32, 8)], (ones(n, n), ones(n, n)))


# Launches that only a GPU's profiler has seen; what the engine would need hours for, a few blocks count.
LARGE = {
    "product, whole 512": square(matmul_naive, 16, 512),
    "product, whole 1024": square(matmul_naive, 16, 1024),
    "product, whole 2048": square(matmul_naive, 16, 2048),
    "tiles of 16, whole 1024": square(tiled(16), 16, 1024),
    "tiles of 32, whole 2048": square(tiled(32), 32, 2048),
    "tiles of 32, whole 4096": square(tiled(32), 32, 4096),
    "softmax, block a row, whole": lambda: norm(softmax_by_block, 10240, 128, 10240, 1024, 0),
    "softmax, thread a row, whole": lambda: norm(softmax_by_thread, 40, 256, 10240, 1024, 0),
    "transpose, naive, 4096": transposed(transpose_naive, 4096),
    "transpose, padded, 4096": transposed(transpose_padded, 4096),
}


def modelled(case, device, whole=False):
    """The cache model's hit rates for a case on a device of the registry.

    whole: use the whole device, as for a launch on a GPU, not the case's smaller one.
    """
    smaller, launch = (1, LARGE[case]) if case in LARGE else CASES[case]
    launcher, args = launch()
    model = CacheModel(device, 1 if whole else smaller)
    watched(launcher, args, {}, specs.get(device).arch, (model,), None)
    return model.result()
