"""6 points: x taken for the row: rectangles stay partly unwritten, and a warp reads down a column of a."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    row, col = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
