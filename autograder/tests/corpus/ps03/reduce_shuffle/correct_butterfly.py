"""18 points: a butterfly, after which every lane has the sum."""

from numba import cuda, float32


@cuda.jit(device=True)
def warp_sum(value):
    for k in range(5):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 16 >> k)
    return value


@cuda.jit
def reduce_shuffle(x, total):
    table = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i] * x[i]
    mine = warp_sum(mine)
    if t % 32 == 0:
        table[t // 32] = mine
    cuda.syncthreads()
    if t < 32:
        mine = warp_sum(table[t] if t < 8 else float32(0))
        if t == 0:
            cuda.atomic.add(total, 0, mine)
