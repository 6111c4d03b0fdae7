"""10 points: strides by the threads of a block: the blocks do each other's work."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):
        out[i] = (raw[i] - dark[i]) * gain
