"""17 points: loads and stores outside the matrices."""

from numba import cuda, float32

TILE = 16


@cuda.jit
def matmul_tiled(a, b, c):
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    acc = float32(0)
    M, N = c.shape
    K = a.shape[1]
    for start in range(0, K, TILE):
        tile_a[ty, tx] = a[row, start + tx]
        tile_b[ty, tx] = b[start + ty, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[row, col] = acc
