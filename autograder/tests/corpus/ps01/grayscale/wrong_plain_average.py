"""0 points: the mean of the three colours is not the brightness."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    out[row, col] = (rgb[row, col, 0] + rgb[row, col, 1] + rgb[row, col, 2]) / 3
