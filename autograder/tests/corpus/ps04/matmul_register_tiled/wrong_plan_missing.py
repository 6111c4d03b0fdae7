"""0 points: no launch plan."""

from numba import cuda

plan_register_tiled = None


@cuda.jit
def matmul_register_tiled(a, b, c):
    col, row = cuda.grid(2)
