"""13 points: neighbours add first: every warp is woken in the first five rounds."""

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
    stride = 1
    while stride < 256:
        if t % (2 * stride) == 0:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride *= 2
    if t == 0:
        cuda.atomic.add(total, 0, table[0])
