"""5 points: one result a thread, and the tables are read with atomics."""

from numba import cuda, float32


def plan_register_tiled(M, N, K):
    return (-(-N // 16), -(-M // 16)), (16, 16)


@cuda.jit
def matmul_register_tiled(a, b, c):
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    acc = float32(0)
    M, N = c.shape
    K = a.shape[1]
    for start in range(0, K, 16):
        tile_a[ty, tx] = a[row, start + tx] if row < M and start + tx < K else float32(0)
        tile_b[ty, tx] = b[start + ty, col] if start + ty < K and col < N else float32(0)
        cuda.syncthreads()
        for k in range(16):
            x = cuda.atomic.add(tile_a, (ty, k), float32(0))
            acc += x * cuda.atomic.add(tile_b, (k, tx), float32(0))
        cuda.syncthreads()
    if row < M and col < N:
        c[row, col] = acc
