"""0 points: a grid of two thousand million blocks, to keep the executor busy."""

from numba import cuda

def plan(n):
    return 2**31 - 1, 1024


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]
