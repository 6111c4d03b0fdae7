"""14 points: z ** 2 of a complex number is a general power, and costs as much as many iterations."""

from numba import cuda


@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    c = complex(x_min + col * step, y_min + row * step)
    z, steps = 0j, 0
    while steps < max_iterations and abs(z) <= 2:
        z = z**2 + c
        steps += 1
    out[row, col] = steps
