"""7 points: stars of both kinds in every warp; loops are unrolled so that both jobs fit into the instructions."""

from numba import cuda, float32


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    if t < x.size:
        v = x[t]
        n = steps // 8
        if t % 2 == 0:
            for _ in range(n):
                for _ in range(8):
                    v = v * v + float32(0.25)
            for _ in range(steps - 8 * n):
                v = v * v + float32(0.25)
        else:
            for _ in range(n):
                for _ in range(8):
                    v = float32(1) / (float32(1) + v)
            for _ in range(steps - 8 * n):
                v = float32(1) / (float32(1) + v)
        out[t] = v
