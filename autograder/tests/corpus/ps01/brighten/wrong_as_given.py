"""0 points: the given program, with nothing mended."""

from numba import cuda


def plan_brighten(height, width):
    return (width // 16, height // 16), (16, 16)


@cuda.jit
def brighten(image, gain, out):
    col, row = cuda.grid(2)
    out[row, col] = gain * image[row, col]
