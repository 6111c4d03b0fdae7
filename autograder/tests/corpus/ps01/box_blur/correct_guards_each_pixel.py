"""21 points: walks the whole window and tests each pixel."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    col, row = cuda.grid(2)
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    count = 0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            r, c = row + dy, col + dx
            if 0 <= r < height and 0 <= c < width:
                total += image[r, c]
                count += 1
    out[row, col] = total / count
