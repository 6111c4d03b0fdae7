"""20 points: sums in 64 bits, which is slow and right."""

from numba import cuda


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = 0.0
    for k in range(b.shape[0]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
