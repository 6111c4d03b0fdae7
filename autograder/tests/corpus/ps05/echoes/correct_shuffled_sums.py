"""6 points: the lanes exchange their counts of a strength by shuffles."""

from numba import cuda, int32


@cuda.jit
def echoes(x, out):
    table = cuda.shared.array(1024, int32)
    lane = cuda.threadIdx.x
    for strength in range(32):
        table[32 * strength + lane] = 0
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        table[32 * x[i] + lane] += 1
    mine = 0
    for strength in range(32):
        count = table[32 * strength + lane]
        for k in range(5):
            count += cuda.shfl_xor_sync(0xFFFFFFFF, count, 1 << k)
        if lane == strength:
            mine = count
    cuda.atomic.add(out, lane, mine)
