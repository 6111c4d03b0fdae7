"""9 points: threads outside c read and write outside; sizes that the blocks fit do not notice."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc
