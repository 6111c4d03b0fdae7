"""Kernels that chapters 3 to 5 count but do not print, since a part of each is a task of a problem set."""

from numba import cuda, float32


@cuda.jit(device=True)
def load_shared(partial, x):
    """Each thread puts its number, or 0, into shared memory. Then wait for the others."""
    i = cuda.grid(1)
    partial[cuda.threadIdx.x] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()


@cuda.jit
def sum_neighbours(x, total):
    """One block: the sum of its 256 numbers by a tree that adds neighbours first."""
    partial = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    load_shared(partial, x)
    stride = 1
    while stride < 256:
        if t % (2 * stride) == 0:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride *= 2
    if t == 0:
        cuda.atomic.add(total, 0, partial[0])


@cuda.jit
def sum_halves(x, total):
    """One block: the sum of its 256 numbers by a tree that adds the second half to the first."""
    partial = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    load_shared(partial, x)
    stride = 128
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        cuda.atomic.add(total, 0, partial[0])


@cuda.jit
def scan(x):
    """One block replaces its 256 numbers by their running totals, as Hillis and Steele do."""
    partial = cuda.shared.array(256, float32)
    t, reach = cuda.threadIdx.x, 1
    load_shared(partial, x)
    while reach < 256:
        value = partial[t]
        if t >= reach:
            value += partial[t - reach]
        cuda.syncthreads()
        partial[t] = value
        cuda.syncthreads()
        reach *= 2
    x[t] = partial[t]


def tiled(side):
    """The product of matrices whose sides are multiples of ``side``, through tiles of side x side."""

    @cuda.jit
    def matmul_tiled(A, B, C):
        """One thread: one element of C, from tiles that its block shares."""
        a_tile = cuda.shared.array((side, side), float32)
        b_tile = cuda.shared.array((side, side), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, A.shape[1], side):
            a_tile[ty, tx], b_tile[ty, tx] = A[row, k0 + tx], B[k0 + ty, col]
            cuda.syncthreads()
            for k in range(side):
                acc += a_tile[ty, k] * b_tile[k, tx]
            cuda.syncthreads()
        C[row, col] = acc

    return matmul_tiled


@cuda.jit(device=True)
def multiply(acc, a_tile, b_tile):
    """One thread: 16 steps of its 4 x 4 sums. Then wait for the others."""
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for k in range(16):
        for i in range(4):
            for j in range(4):
                acc[i, j] += a_tile[ty + 16 * i, k] * b_tile[k, tx + 16 * j]
    cuda.syncthreads()


def transpose_tiled(width):
    """Matrices whose sides are multiples of 32, transposed through a tile with rows of ``width`` words."""

    @cuda.jit
    def transpose_tiled(a, out):
        """One thread: one number in, another out, both along rows."""
        tile = cuda.shared.array((32, width), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        tile[y, x] = a[row, col]
        cuda.syncthreads()
        col, row = 32 * cuda.blockIdx.y + x, 32 * cuda.blockIdx.x + y
        out[row, col] = tile[x, y]

    return transpose_tiled


@cuda.jit
def transpose_swizzled(a, out):
    """As transpose_tiled, with element (y, x) of the tile in column x ^ y."""
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[y, x ^ y] = a[row, col]
    cuda.syncthreads()
    col, row = 32 * cuda.blockIdx.y + x, 32 * cuda.blockIdx.x + y
    out[row, col] = tile[x, y ^ x]


@cuda.jit(device=True)
def fetch(tile, a, top, left):
    """One thread: its share of a tile of 34 x 34, with 0 outside of ``a``. Then wait for the others."""
    for y in range(cuda.threadIdx.y, 34, 32):
        for x in range(cuda.threadIdx.x, 34, 32):
            row, col = top + y, left + x
            inside = 0 <= row < a.shape[0] and 0 <= col < a.shape[1]
            tile[y, x] = a[row, col] if inside else float32(0)
    cuda.syncthreads()
