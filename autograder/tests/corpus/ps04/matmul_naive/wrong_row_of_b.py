"""0 points: walks along a row of b as well."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[col, k]
    c[row, col] = acc
