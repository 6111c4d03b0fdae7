"""10 points: gridDim for gridsize: most pixels are done many times over."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    for i in range(cuda.grid(1), out.size, cuda.gridDim.x):
        out[i] = (raw[i] - dark[i]) * gain
