"""10 points: leaves early instead of an if around the addition."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    i = cuda.grid(1)
    if i >= x.size:
        return
    cuda.atomic.add(total, 0, x[i])
