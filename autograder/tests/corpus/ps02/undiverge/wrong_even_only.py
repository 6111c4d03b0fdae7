"""19 points: halves that are equal: the last star of an odd number is forgotten."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    t, half = cuda.grid(1), x.size // 2
    if t < half:
        v = x[2 * t]
        for _ in range(steps):
            v = v * v + 0.25
        out[2 * t] = v
    elif t < 2 * half:
        v = x[2 * (t - half) + 1]
        for _ in range(steps):
            v = 1 / (1 + v)
        out[2 * (t - half) + 1] = v
