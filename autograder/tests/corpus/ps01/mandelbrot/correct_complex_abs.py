"""16 points: with complex numbers and abs(), which costs a square root."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    c = complex(x_min + col * step, y_min + row * step)
    z = complex(0.0, 0.0)
    steps = 0
    while steps < max_iterations and abs(z) <= 2.0:
        z = z * z + c
        steps += 1
    out[row, col] = steps
