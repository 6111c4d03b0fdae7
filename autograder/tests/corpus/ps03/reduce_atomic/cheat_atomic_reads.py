"""7 points: each thread reads far from its neighbours, with atomics."""

from numba import cuda, float32


@cuda.jit
def reduce_atomic(x, total):
    t, threads = cuda.grid(1), cuda.gridsize(1)
    each = threads // 32
    i = t % 32 * each + t // 32
    if i < x.size:
        rain = cuda.atomic.add(x, i, float32(0))
        cuda.atomic.add(total, 0, max(rain - float32(0.25), float32(0)))
