"""6 points: most pixels escape early: sixteen steps for all."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    height, width = out.shape
    if col >= width or row >= height:
        return
    c_x = x_min + col * step
    c_y = y_min + row * step
    x = 0.0
    y = 0.0
    steps = 0
    while steps < min(max_iterations, 16) and x * x + y * y <= 4.0:
        x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
        steps += 1
    out[row, col] = steps
