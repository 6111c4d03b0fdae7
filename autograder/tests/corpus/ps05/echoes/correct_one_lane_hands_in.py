"""6 points: the lanes add up a strength by shuffles, and one of them hands it in."""

from numba import cuda, int32


@cuda.jit
def echoes(x, out):
    table = cuda.shared.array((32, 32), int32)
    lane = cuda.threadIdx.x
    for strength in range(32):
        table[strength, lane] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[x[i], lane] += 1
    for strength in range(32):
        count = table[strength, lane]
        for away in (16, 8, 4, 2, 1):
            count += cuda.shfl_down_sync(0xFFFFFFFF, count, away)
        if lane == 0:
            cuda.atomic.add(out, strength, count)
