"""5 points: one thread does everything, a sector for each number."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    if cuda.grid(1) == 0:
        for i in range(out.size):
            out[i] = x[i * stride + offset]
