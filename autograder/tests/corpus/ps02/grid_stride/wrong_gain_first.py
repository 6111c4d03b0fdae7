"""0 points: forgets the brackets."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = raw[i] - dark[i] * gain
