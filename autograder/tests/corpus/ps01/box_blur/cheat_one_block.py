"""21 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def box_blur(image, radius, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            height, width = image.shape
            if col >= width or row >= height:
                continue
            total = 0.0
            count = 0
            for r in range(max(0, row - radius), min(height, row + radius + 1)):
                for c in range(max(0, col - radius), min(width, col + radius + 1)):
                    total += image[r, c]
                    count += 1
            out[row, col] = total / count
