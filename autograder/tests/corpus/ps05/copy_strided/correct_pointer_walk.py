"""10 points: works out the place first."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    i = cuda.grid(1)
    if i < out.size:
        place = offset + stride * i
        out[i] = x[place]
