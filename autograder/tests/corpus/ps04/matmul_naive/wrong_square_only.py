"""6 points: takes K from the rows of c, which holds for square matrices only."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = float32(0)
    for k in range(c.shape[0]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
