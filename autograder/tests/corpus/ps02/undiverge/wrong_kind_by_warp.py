"""0 points: the chapter's cure, jobs that alternate by warps, without asking which star a thread has."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        if i // 32 % 2 == 0:
            for _ in range(steps):
                v = v * v + 0.25
        else:
            for _ in range(steps):
                v = 1 / (1 + v)
        out[i] = v
