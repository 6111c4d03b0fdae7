"""3 points: reads neighbours."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i + offset]
