"""16 points: a for loop with a break."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    x, y = 0.0, 0.0
    c_x, c_y = x_min + col * step, y_min + row * step
    out[row, col] = max_iterations
    for n in range(max_iterations):
        if x * x + y * y > 4.0:
            out[row, col] = n
            break
        x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
