"""4 points: where the window hangs over, takes the pixel at the edge again."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    for r in range(row - radius, row + radius + 1):
        for c in range(col - radius, col + radius + 1):
            total += image[min(max(r, 0), height - 1), min(max(c, 0), width - 1)]
    out[row, col] = total / ((2 * radius + 1) * (2 * radius + 1))
