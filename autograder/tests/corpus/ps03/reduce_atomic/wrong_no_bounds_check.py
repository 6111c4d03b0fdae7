"""4 points: threads past the end add what lies there."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    cuda.atomic.add(total, 0, x[cuda.grid(1)])
