"""0 points: a kernel in numba, which these arrays are not for."""

from numba import cuda


@cuda.jit
def add_kernel(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def vector_add(x, y, out):
    add_kernel[-(-x.shape[0] // 256), 256](x, y, out)
