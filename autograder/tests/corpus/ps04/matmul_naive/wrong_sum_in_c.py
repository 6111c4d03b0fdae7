"""17 points: adds up in c: right, with a load and a store for each k."""

from numba import cuda


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    c[row, col] = 0
    for k in range(a.shape[1]):
        c[row, col] += a[row, k] * b[k, col]
