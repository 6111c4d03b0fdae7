"""0 points: reads, adds and writes without an atomic."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    i = cuda.grid(1)
    if i < x.size:
        total[0] += x[i]
