"""5 points: the first warp adds up for its whole block, and the other seven watch."""

from numba import cuda, float32


@cuda.jit
def reduce_shuffle(x, total):
    lane, mine = cuda.threadIdx.x, float32(0)
    if lane < 32:
        for first in range(cuda.blockIdx.x * 256, x.size, cuda.gridsize(1)):
            for i in range(first + lane, min(first + 256, x.size), 32):
                mine += x[i] * x[i]
        for k in range(5):
            mine += cuda.shfl_down_sync(0xFFFFFFFF, mine, 16 >> k)
        if lane == 0:
            cuda.atomic.add(total, 0, mine)
