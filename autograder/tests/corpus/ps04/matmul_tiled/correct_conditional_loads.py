"""27 points: pads with a conditional expression."""

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
        tile_a[ty, tx] = a[row, start + tx] if row < M and start + tx < K else float32(0)
        tile_b[ty, tx] = b[start + ty, col] if start + ty < K and col < N else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < M and col < N:
        c[row, col] = acc
