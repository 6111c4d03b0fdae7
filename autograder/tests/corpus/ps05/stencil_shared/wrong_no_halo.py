"""0 points: a table of 32 x 32: what lies beyond counts as zero."""

from numba import cuda, float32


@cuda.jit
def stencil_shared(x, out):
    tile = cuda.shared.array((34, 34), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for r in range(ty, 34, 32):
        for c in range(tx, 34, 32):
            tile[r, c] = 0
    cuda.syncthreads()
    col, row = cuda.grid(2)
    inside = row < x.shape[0] and col < x.shape[1]
    if inside:
        tile[ty + 1, tx + 1] = x[row, col]
    cuda.syncthreads()
    if inside:
        here = tile[ty + 1, tx + 1]
        around = tile[ty, tx + 1] + tile[ty + 2, tx + 1] + tile[ty + 1, tx] + tile[ty + 1, tx + 2]
        out[row, col] = here + float32(0.1) * (around - 4 * here)
