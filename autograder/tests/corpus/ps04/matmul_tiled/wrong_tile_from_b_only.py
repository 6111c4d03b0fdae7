"""19 points: b comes through shared memory, a straight from global memory: half of the cure."""

from numba import cuda, float32

TILE = 16


@cuda.jit
def matmul_tiled(a, b, c):
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_b = cuda.shared.array((TILE, TILE), float32)
    acc = float32(0)
    M, N = c.shape
    K = a.shape[1]
    for start in range(0, K, TILE):
        tile_b[ty, tx] = b[start + ty, col] if start + ty < K and col < N else float32(0)
        cuda.syncthreads()
        if row < M and col < N:
            for k in range(start, min(start + TILE, K)):
                acc += a[row, k] * tile_b[k - start, tx]
        cuda.syncthreads()
    if row < M and col < N:
        c[row, col] = acc
