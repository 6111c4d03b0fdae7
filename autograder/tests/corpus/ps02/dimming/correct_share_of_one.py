"""6 points: the share that is left, taken from one."""

from numba import cuda, float32


@cuda.jit
def dimming(before, now, out):
    n, step = out.shape[0], cuda.gridDim.x * cuda.blockDim.x
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    while i < n:
        out[i] = float32(100) * (float32(1) - now[i] / before[i])
        i += step
