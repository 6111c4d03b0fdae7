"""21 points: the clipped window is a rectangle: its size is a product."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    top, bottom = max(0, row - radius), min(height, row + radius + 1)
    left, right = max(0, col - radius), min(width, col + radius + 1)
    total = 0.0
    for r in range(top, bottom):
        for c in range(left, right):
            total += image[r, c]
    out[row, col] = total / ((bottom - top) * (right - left))
