"""8 points: a tree in each warp only, and an atomic from each of the eight."""

from numba import cuda, float32


@cuda.jit
def reduce_tree(x, total):
    table = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    table[t] = mine
    cuda.syncthreads()
    stride = 16
    while stride > 0:
        if t % 32 < stride:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t % 32 == 0:
        cuda.atomic.add(total, 0, table[t])
