"""30 points: alternates the kinds warp by warp, so that the two stay near each other in memory."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    t = cuda.grid(1)
    pair, lane = t // 64, t % 64
    odd = lane >= 32
    star = 64 * pair + 2 * (lane % 32) + (1 if odd else 0)
    if star >= x.size:
        return
    v = x[star]
    if odd:
        for _ in range(steps):
            v = 1 / (1 + v)
    else:
        for _ in range(steps):
            v = v * v + 0.25
    out[star] = v
