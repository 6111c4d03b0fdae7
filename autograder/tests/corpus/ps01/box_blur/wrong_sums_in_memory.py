"""21 points: adds up in out[row, col]: right, with nine times the stores."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    out[row, col] = 0
    count = 0
    for r in range(max(0, row - radius), min(height, row + radius + 1)):
        for c in range(max(0, col - radius), min(width, col + radius + 1)):
            out[row, col] += image[r, c]
            count += 1
    out[row, col] /= count
