"""20 points: strides over the grid, backwards along the chain."""

from numba import cuda, float32


@cuda.jit
def matmul_naive(a, b, c):
    first_col, first_row = cuda.grid(2)
    step_col, step_row = cuda.gridsize(2)
    for row in range(first_row, c.shape[0], step_row):
        for col in range(first_col, c.shape[1], step_col):
            acc = float32(0)
            for k in range(a.shape[1] - 1, -1, -1):
                acc += a[row, k] * b[k, col]
            c[row, col] = acc
