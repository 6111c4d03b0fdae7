"""9 points: a table whose columns lie in one bank, read with atomics."""

from numba import cuda, float32


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    col, row = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = cuda.atomic.add(tile, (tx, ty), float32(0))
