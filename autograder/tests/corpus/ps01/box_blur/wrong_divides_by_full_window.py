"""8 points: dark borders: divides by (2 radius + 1)^2 everywhere."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    for r in range(max(0, row - radius), min(height, row + radius + 1)):
        for c in range(max(0, col - radius), min(width, col + radius + 1)):
            total += image[r, c]
    out[row, col] = total / ((2 * radius + 1) * (2 * radius + 1))
