"""15 points: no table at all: every warp adds its own sum."""

from numba import cuda, float32


@cuda.jit(device=True)
def warp_sum(value):
    for k in range(5):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16 >> k)
    return value


@cuda.jit
def reduce_shuffle(x, total):
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i] * x[i]
    mine = warp_sum(mine)
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(total, 0, mine)
