"""5 points: the lanes of a warp write far from each other: right, and every lane opens a sector of its own."""

from numba import cuda


@cuda.jit
def copy_strided(x, stride, offset, out):
    t = cuda.grid(1)
    threads = cuda.gridsize(1)
    each = threads // 32
    i = t % 32 * each + t // 32
    if i < out.size:
        out[i] = x[i * stride + offset]
