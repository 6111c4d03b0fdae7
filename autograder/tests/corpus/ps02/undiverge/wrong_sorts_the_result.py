"""0 points: writes the even stars first, the odd ones after them."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    evens = (x.size + 1) // 2
    if t < evens:
        v = x[2 * t]
        for _ in range(steps):
            v = v * v + 0.25
        out[t] = v
    elif t < x.size:
        v = x[2 * (t - evens) + 1]
        for _ in range(steps):
            v = 1 / (1 + v)
        out[t] = v
