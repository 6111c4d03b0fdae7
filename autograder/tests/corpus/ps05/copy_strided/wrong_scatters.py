"""2 points: lets the stride spread what is written instead of choosing what is read."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    i = cuda.grid(1)
    place = i * stride + offset
    if place < out.size:
        out[place] = x[i]
