"""4 points: threads past the end add what lies there."""

from numba import cuda, float32


@cuda.jit
def reduce_atomic(x, total):
    cuda.atomic.add(total, 0, max(x[cuda.grid(1)] - float32(0.25), float32(0)))
