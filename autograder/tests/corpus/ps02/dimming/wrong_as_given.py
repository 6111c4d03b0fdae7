"""1 points: the given program, with nothing mended."""

from numba import cuda


@cuda.jit
def dimming(before, now, out):
    for i in range(cuda.grid(1), now.size, cuda.blockDim.x):
        out[i] = 100.0 * (before[i] - now[i]) / before[i]
