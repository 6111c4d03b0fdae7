"""10 points: a block adds up on a table of one place first, and hands in one number."""

from numba import cuda, float32


@cuda.jit
def reduce_atomic(x, total):
    share = cuda.shared.array(1, float32)
    if cuda.threadIdx.x == 0:
        share[0] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(share, 0, max(x[i] - float32(0.25), float32(0)))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, share[0])
