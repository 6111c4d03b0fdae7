"""10 points: rounds to 32 bits, so that a few pixels near the border take a step more or less."""

from numba import cuda, float32


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    c_x, c_y = float32(x_min + col * step), float32(y_min + row * step)
    x = y = float32(0)
    steps = 0
    while steps < max_iterations and x * x + y * y <= float32(4):
        x, y = x * x - y * y + c_x, float32(2) * x * y + c_y
        steps += 1
    out[row, col] = steps
