"""10 points: the Python loop inside the kernel: every thread makes the whole image."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    for row in range(out.shape[0]):
        for col in range(out.shape[1]):
            out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]
