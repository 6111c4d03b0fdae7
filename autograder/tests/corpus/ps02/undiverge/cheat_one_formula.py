"""7 points: both jobs as one formula with four numbers, so that no lane waits: every star does the work of both."""

from numba import cuda, float32


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    if t < x.size:
        odd = float32(t % 2)
        even, added = float32(1) - odd, float32(0.25) + float32(0.75) * odd
        v = x[t]
        for _ in range(steps):
            v = (v * v * even + added) / (v * odd + float32(1))
        out[t] = v
