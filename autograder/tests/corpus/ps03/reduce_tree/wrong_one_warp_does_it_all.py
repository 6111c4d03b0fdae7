"""5 points: the first warp adds up for its whole block, so that its table is small; the other seven watch."""

from numba import cuda, float32


@cuda.jit
def reduce_tree(x, total):
    table = cuda.shared.array(32, float32)
    t, mine = cuda.threadIdx.x, float32(0)
    if t < 32:
        for first in range(cuda.blockIdx.x * 256, x.size, cuda.gridsize(1)):
            for i in range(first + t, min(first + 256, x.size), 32):
                mine += x[i]
        table[t] = mine
    cuda.syncthreads()
    stride = 16
    while stride > 0:
        if t < stride:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        cuda.atomic.add(total, 0, table[0])
