"""18 points: keeps its own sum in a register and puts it down for the next round."""

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
    stride = 128
    while stride > 0:
        if t < stride:
            mine += table[t + stride]
            table[t] = mine
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        cuda.atomic.add(total, 0, mine)
