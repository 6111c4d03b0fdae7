"""7 points: the if inside the loop: both sides are computed in every round."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(steps):
            if i % 2 == 0:
                v = v * v + 0.25
            else:
                v = 1 / (1 + v)
        out[i] = v
