"""15 points: the naive kernel: right, and every number is loaded sixteen times."""

from numba import cuda, float32

TILE = 16


@cuda.jit
def matmul_tiled(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
