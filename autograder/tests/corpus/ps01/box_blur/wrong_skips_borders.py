"""4 points: leaves the pixels at the border unwritten."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    if row < radius or col < radius or row >= height - radius or col >= width - radius:
        return
    total = 0.0
    for r in range(row - radius, row + radius + 1):
        for c in range(col - radius, col + radius + 1):
            total += image[r, c]
    out[row, col] = total / ((2 * radius + 1) * (2 * radius + 1))
