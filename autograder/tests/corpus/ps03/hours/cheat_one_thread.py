"""5 points: thread 0 adds up for all."""

from numba import cuda, float32


@cuda.jit
def hours(x, out):
    if cuda.threadIdx.x == 0:
        first = cuda.blockIdx.x * cuda.blockDim.x
        total = float32(0)
        for i in range(first, min(first + cuda.blockDim.x, x.size)):
            total += x[i]
        out[cuda.blockIdx.x] = total
