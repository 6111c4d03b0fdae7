"""0 points: leaves the result in the input as well."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    rgb[row, col, 0] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]
    out[row, col] = rgb[row, col, 0]
