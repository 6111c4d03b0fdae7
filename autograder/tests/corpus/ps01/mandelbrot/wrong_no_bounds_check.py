"""14 points: threads outside the image write; sizes that the blocks fit do not notice."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    x, y = 0.0, 0.0
    c_x, c_y = x_min + col * step, y_min + row * step
    steps = 0
    while steps < max_iterations and x * x + y * y <= 4.0:
        x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
        steps += 1
    out[row, col] = steps
