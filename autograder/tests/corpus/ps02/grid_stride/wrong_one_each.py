"""4 points: one pixel for each thread, as in problem set 1."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (raw[i] - dark[i]) * gain
