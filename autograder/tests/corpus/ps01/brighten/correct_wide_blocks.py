"""6 points: blocks of 32 x 8, and a condition for what is too bright."""

from numba import cuda


def plan_brighten(height, width):
    return ((width + 31) // 32, (height + 7) // 8), (32, 8)


@cuda.jit
def brighten(image, gain, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x >= width or y >= height:
        return
    product = image[y, x] * gain
    if product > 255:
        product = 255
    out[y, x] = product
