"""2 points: no table: each echo is added in global memory by an atomic."""

from numba import cuda


@cuda.jit
def echoes(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(out, x[i], 1)
