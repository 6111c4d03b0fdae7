"""0 points: trusts that c begins as 0."""

from numba import cuda


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = c[row, col]
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
