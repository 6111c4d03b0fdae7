"""14 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            height, width = out.shape
            if col >= width or row >= height:
                continue
            c_x = x_min + col * step
            c_y = y_min + row * step
            x = 0.0
            y = 0.0
            steps = 0
            while steps < max_iterations and x * x + y * y <= 4.0:
                x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
                steps += 1
            out[row, col] = steps
