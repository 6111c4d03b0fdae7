"""6 points: compares with the size of x."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i * stride + offset]
