"""13 points: threads without a number leave, and never help to write."""

from numba import cuda, float32


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row >= x.shape[0] or col >= x.shape[1]:
        return
    tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    col, row = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[tx, ty]
