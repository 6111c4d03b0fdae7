"""17 points: a while loop instead of range."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    i = cuda.grid(1)
    while i < out.size:
        out[i] = gain * raw[i] - gain * dark[i]
        i += cuda.gridsize(1)
