"""0 points: reads every other row of the window: half the work, nearly the same mean."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    count = 0
    for r in range(max(0, row - radius), min(height, row + radius + 1), 2):
        for c in range(max(0, col - radius), min(width, col + radius + 1)):
            total += image[r, c]
            count += 1
    out[row, col] = total / count
