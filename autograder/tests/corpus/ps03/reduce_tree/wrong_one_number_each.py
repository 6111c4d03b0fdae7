"""10 points: each thread brings one number: the rest is forgotten."""

from numba import cuda, float32


@cuda.jit
def reduce_tree(x, total):
    table = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    mine = x[i] if i < x.size else float32(0)
    table[t] = mine
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        cuda.atomic.add(total, 0, table[0])
