"""0 points: cuda.atomic.add returns what was there before, and that is written over the total."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    i = cuda.grid(1)
    if i < x.size:
        total[0] = cuda.atomic.add(total, 0, x[i])
