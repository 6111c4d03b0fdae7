"""7 points: one thread for each star in order: both jobs in every warp."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        if i % 2 == 0:
            for _ in range(steps):
                v = v * v + 0.25
        else:
            for _ in range(steps):
                v = 1 / (1 + v)
        out[i] = v
