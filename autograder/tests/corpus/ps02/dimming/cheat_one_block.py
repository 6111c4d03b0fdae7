"""3 points: the first block does all stars, and the others go home."""

from numba import cuda, float32


@cuda.jit
def dimming(before, now, out):
    if cuda.blockIdx.x == 0:
        for i in range(cuda.threadIdx.x, now.size, cuda.blockDim.x):
            out[i] = float32(100) * (before[i] - now[i]) / before[i]
