"""0 points: leaves out summands that look small."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    M, N = c.shape
    if col >= N or row >= M:
        return
    acc = float32(0)
    for k in range(a.shape[1]):
        if abs(a[row, k]) > float32(0.05):
            acc += a[row, k] * b[k, col]
    c[row, col] = acc
