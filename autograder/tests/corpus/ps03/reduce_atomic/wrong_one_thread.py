"""7 points: the first thread adds up everything, a sector for every number."""

from numba import cuda, float32


@cuda.jit
def reduce_atomic(x, total):
    if cuda.grid(1) == 0:
        for i in range(x.size):
            total[0] += max(x[i] - float32(0.25), float32(0))
