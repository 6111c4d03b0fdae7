"""0 points: whole runs only: the pixels that are left over are forgotten."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    each = out.size // cuda.gridsize(1)
    first = each * cuda.grid(1)
    for i in range(first, first + each):
        out[i] = (raw[i] - dark[i]) * gain
