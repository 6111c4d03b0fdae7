"""2 points: threads past the end write."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    i = cuda.grid(1)
    out[i] = x[i * stride + offset]
