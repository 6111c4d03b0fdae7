"""7 points: both jobs for every star in every round, unrolled so that the choice costs few instructions."""

from numba import cuda, float32


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    if t < x.size:
        even = t % 2 == 0
        v = x[t]
        n = steps // 8
        for _ in range(n):
            for _ in range(8):
                a = v * v + float32(0.25)
                b = float32(1) / (float32(1) + v)
                v = a if even else b
        for _ in range(steps - 8 * n):
            a = v * v + float32(0.25)
            b = float32(1) / (float32(1) + v)
            v = a if even else b
        out[t] = v
