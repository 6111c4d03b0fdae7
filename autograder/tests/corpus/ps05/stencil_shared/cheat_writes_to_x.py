"""0 points: works in place, so that nothing needs to be kept twice."""

from numba import cuda, float32


@cuda.jit
def stencil_shared(x, out):
    col, row = cuda.grid(2)
    if 0 < row < x.shape[0] - 1 and 0 < col < x.shape[1] - 1:
        x[row, col] += float32(0.1) * (x[row, col + 1] - x[row, col])
        out[row, col] = x[row, col]
