"""0 points: the first half of the threads settles the first half of the stars, whatever they are."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    if t < x.size:
        v = x[t]
        if t < x.size // 2:
            for _ in range(steps):
                v = v * v + 0.25
        else:
            for _ in range(steps):
                v = 1 / (1 + v)
        out[t] = v
