"""13 points: everybody fetches a place of its own, and the threads at the edge of the block fetch the halo; the factor in 64 bits."""

from numba import cuda, float32


@cuda.jit(device=True)
def at(x, row, col):
    if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:
        return x[row, col]
    return float32(0)


@cuda.jit
def stencil_shared(x, out):
    tile = cuda.shared.array((34, 34), float32)
    tx, ty = cuda.threadIdx.x + 1, cuda.threadIdx.y + 1
    col, row = cuda.grid(2)
    tile[ty, tx] = at(x, row, col)
    if ty == 1:
        tile[0, tx] = at(x, row - 1, col)
    if ty == 32:
        tile[33, tx] = at(x, row + 1, col)
    if tx == 1:
        tile[ty, 0] = at(x, row, col - 1)
    if tx == 32:
        tile[ty, 33] = at(x, row, col + 1)
    cuda.syncthreads()
    if row < x.shape[0] and col < x.shape[1]:
        around = tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]
        out[row, col] = tile[ty, tx] + 0.1 * (around - 4 * tile[ty, tx])
