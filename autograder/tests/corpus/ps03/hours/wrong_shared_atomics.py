"""5 points: one place in shared memory, to which the threads add one after the other; no tree."""

from numba import cuda, float32


@cuda.jit
def hours(x, out):
    table = cuda.shared.array(1, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t == 0:
        table[0] = float32(0)
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(table, 0, x[i])
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = table[0]
