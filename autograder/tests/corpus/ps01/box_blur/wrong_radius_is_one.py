"""4 points: ignores the radius."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    count = 0
    for r in range(max(0, row - 1), min(height, row + 2)):
        for c in range(max(0, col - 1), min(width, col + 2)):
            total += image[r, c]
            count += 1
    out[row, col] = total / count
