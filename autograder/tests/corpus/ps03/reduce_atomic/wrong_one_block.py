"""0 points: every block adds the first 256 numbers."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    i = cuda.threadIdx.x
    if i < x.size:
        cuda.atomic.add(total, 0, x[i])
