"""0 points: computes one of the sixteen results and copies it to its neighbours."""

from numba import cuda, float32


SIDE = 64  # a block computes SIDE x SIDE elements of c
STEP = 16  # values of k that it brings in at a time
EACH = 4  # a thread computes EACH x EACH elements


def plan_register_tiled(M, N, K):
    return (-(-N // SIDE), -(-M // SIDE)), (SIDE // EACH, SIDE // EACH)


@cuda.jit
def matmul_register_tiled(a, b, c):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE
    tile_a = cuda.shared.array((SIDE, STEP), float32)
    tile_b = cuda.shared.array((STEP, SIDE), float32)
    acc = cuda.local.array((EACH, EACH), float32)
    from_a = cuda.local.array(EACH, float32)
    M, N = c.shape
    K = a.shape[1]
    for i in range(EACH):
        for j in range(EACH):
            acc[i, j] = 0
    for start in range(0, K, STEP):
        for i in range(EACH):
            row, col = ty + 16 * i, tx + 16 * i
            inside_a = top + row < M and start + tx < K
            tile_a[row, tx] = a[top + row, start + tx] if inside_a else float32(0)
            inside_b = start + ty < K and left + col < N
            tile_b[ty, col] = b[start + ty, left + col] if inside_b else float32(0)
        cuda.syncthreads()
        for k in range(STEP):
            for i in range(EACH):
                from_a[i] = tile_a[ty + 16 * i, k]
            for j in range(EACH):
                from_b = tile_b[k, tx + 16 * j]
                for i in range(EACH):
                    acc[i, j] += from_a[i] * from_b
        cuda.syncthreads()
    for i in range(EACH):
        for j in range(EACH):
            row, col = top + ty + 16 * i, left + tx + 16 * j
            if row < M and col < N:
                c[row, col] = acc[0, 0]
