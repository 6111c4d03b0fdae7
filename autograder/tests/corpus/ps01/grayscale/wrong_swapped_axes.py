"""0 points: x taken for the row: wrong where width and height differ, uncoalesced where not."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    row, col = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]
