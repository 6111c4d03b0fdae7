"""0 points: fetches the halo only where there is one, and leaves the rest of the table as it was."""

from numba import cuda, float32


@cuda.jit
def stencil_shared(x, out):
    tile = cuda.shared.array((34, 34), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for r in range(ty, 34, 32):
        for c in range(tx, 34, 32):
            row, col = 32 * cuda.blockIdx.y - 1 + r, 32 * cuda.blockIdx.x - 1 + c
            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:
                tile[r, c] = x[row, col]
    cuda.syncthreads()
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        here = tile[ty + 1, tx + 1]
        around = tile[ty, tx + 1] + tile[ty + 2, tx + 1] + tile[ty + 1, tx] + tile[ty + 1, tx + 2]
        out[row, col] = here + float32(0.2) * (around - 4 * here)
