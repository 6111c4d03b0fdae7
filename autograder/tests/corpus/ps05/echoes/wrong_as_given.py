"""0 points: the given program, with nothing mended."""

from numba import cuda, int32


@cuda.jit
def echoes(x, out):
    table = cuda.shared.array(1024, int32)
    lane = cuda.threadIdx.x
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[32 * lane + x[i]] += 1
    cuda.syncthreads()
    total = 0
    for other in range(32):
        total += table[32 * other + lane]
    cuda.atomic.add(out, lane, total)
