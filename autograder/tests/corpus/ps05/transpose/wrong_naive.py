"""5 points: no table: every lane stores into a row of its own."""

from numba import cuda


@cuda.jit
def transpose(x, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        out[col, row] = x[row, col]
