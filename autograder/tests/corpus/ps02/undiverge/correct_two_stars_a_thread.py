"""30 points: each thread takes an even star, then the odd one beside it; half of the threads have nothing to do."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    star = 2 * cuda.grid(1)
    if star < x.size:
        v = x[star]
        for _ in range(steps):
            v = v * v + 0.25
        out[star] = v
    star += 1
    if star < x.size:
        v = x[star]
        for _ in range(steps):
            v = 1 / (1 + v)
        out[star] = v
