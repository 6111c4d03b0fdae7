"""27 points: two buffers and one barrier a step: the next tiles are written where nobody reads."""

from numba import cuda, float32

TILE = 16


@cuda.jit
def matmul_tiled(a, b, c):
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_a = cuda.shared.array((2, TILE, TILE), float32)
    tile_b = cuda.shared.array((2, TILE, TILE), float32)
    acc = float32(0)
    M, N = c.shape
    K = a.shape[1]
    half = 0
    for start in range(0, K, TILE):
        tile_a[half, ty, tx] = a[row, start + tx] if row < M and start + tx < K else float32(0)
        tile_b[half, ty, tx] = b[start + ty, col] if start + ty < K and col < N else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[half, ty, k] * tile_b[half, k, tx]
        half = 1 - half
    if row < M and col < N:
        c[row, col] = acc
