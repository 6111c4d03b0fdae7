"""12 points: threads outside the image write outside it; the image without a ragged edge does not notice."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    col, row = cuda.grid(2)
    out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]
