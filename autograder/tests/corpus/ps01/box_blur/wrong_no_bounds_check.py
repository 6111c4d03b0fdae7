"""4 points: threads outside the image write; only the size that the blocks fit does not notice."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    total = 0.0
    count = 0
    for r in range(max(0, row - radius), min(height, row + radius + 1)):
        for c in range(max(0, col - radius), min(width, col + radius + 1)):
            total += image[r, c]
            count += 1
    out[row, col] = total / max(count, 1)
