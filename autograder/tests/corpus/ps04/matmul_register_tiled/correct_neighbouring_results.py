"""10 points: a thread takes 4 x 4 neighbours, so lanes lie four apart: the same requests, with conflicts, and stores that only a clock minds."""

from numba import cuda, float32

SIDE, STEP, EACH = 64, 16, 4


def plan_register_tiled(M, N, K):
    return (-(-N // SIDE), -(-M // SIDE)), (SIDE // EACH, SIDE // EACH)


@cuda.jit
def matmul_register_tiled(a, b, c):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE
    tile_a = cuda.shared.array((SIDE, STEP), float32)
    tile_b = cuda.shared.array((STEP, SIDE), float32)
    acc = cuda.local.array((EACH, EACH), float32)
    M, N = c.shape
    K = a.shape[1]
    for i in range(EACH):
        for j in range(EACH):
            acc[i, j] = 0
    for start in range(0, K, STEP):
        for i in range(EACH):
            row, col = ty + 16 * i, tx + 16 * i
            tile_a[row, tx] = a[top + row, start + tx] if top + row < M and start + tx < K else float32(0)
            tile_b[ty, col] = b[start + ty, left + col] if start + ty < K and left + col < N else float32(0)
        cuda.syncthreads()
        for k in range(STEP):
            for i in range(EACH):
                for j in range(EACH):
                    acc[i, j] += tile_a[4 * ty + i, k] * tile_b[k, 4 * tx + j]
        cuda.syncthreads()
    for i in range(EACH):
        for j in range(EACH):
            row, col = top + 4 * ty + i, left + 4 * tx + j
            if row < M and col < N:
                c[row, col] = acc[i, j]
