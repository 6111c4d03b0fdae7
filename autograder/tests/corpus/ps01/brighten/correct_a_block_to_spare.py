"""6 points: a block more than needed where 16 divides a side; its threads do nothing."""

from numba import cuda


def plan_brighten(height, width):
    return (width // 16 + 1, height // 16 + 1), (16, 16)


@cuda.jit
def brighten(image, gain, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = min(255, gain * image[row, col])
