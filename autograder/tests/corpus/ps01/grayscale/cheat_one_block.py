"""11 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def grayscale(rgb, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            height, width = out.shape
            if col >= width or row >= height:
                continue
            red, green, blue = rgb[row, col, 0], rgb[row, col, 1], rgb[row, col, 2]
            out[row, col] = 0.299 * red + 0.587 * green + 0.114 * blue
