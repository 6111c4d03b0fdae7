"""18 points: sums run upwards, so that the last lane has them, and the last warp hands in the total."""

from numba import cuda, float32


@cuda.jit(device=True)
def sum_in_lane_31(value):
    reach = 1
    while reach < 32:
        value += cuda.shfl_up_sync(0xFFFFFFFF, value, reach)
        reach *= 2
    return value


@cuda.jit
def reduce_shuffle(x, total):
    table = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    mine = float32(0)
    i = cuda.grid(1)
    while i < x.size:
        mine += x[i] ** 2
        i += cuda.gridsize(1)
    mine = sum_in_lane_31(mine)
    if t % 32 == 31:
        table[t // 32] = mine
    cuda.syncthreads()
    if t >= 224:
        mine = sum_in_lane_31(table[t - 224] if t < 232 else float32(0))
        if t == 255:
            cuda.atomic.add(total, 0, mine)
