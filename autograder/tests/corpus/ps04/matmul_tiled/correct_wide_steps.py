"""27 points: brings in two tiles of each matrix in a step, so half the barriers; the same loads."""

from numba import cuda, float32

TILE = 16
DEPTH = 2 * TILE


@cuda.jit
def matmul_tiled(a, b, c):
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_a = cuda.shared.array((TILE, DEPTH), float32)
    tile_b = cuda.shared.array((DEPTH, TILE), float32)
    acc = float32(0)
    M, N = c.shape
    K = a.shape[1]
    for start in range(0, K, DEPTH):
        for part in range(2):
            depth = part * TILE
            k_a, k_b = start + depth + tx, start + depth + ty
            tile_a[ty, depth + tx] = a[row, k_a] if row < M and k_a < K else float32(0)
            tile_b[depth + ty, tx] = b[k_b, col] if k_b < K and col < N else float32(0)
        cuda.syncthreads()
        for k in range(DEPTH):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < M and col < N:
        c[row, col] = acc
