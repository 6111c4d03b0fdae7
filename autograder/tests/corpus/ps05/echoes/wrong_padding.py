"""3 points: a word of padding for each lane, which helps a calm sea only."""

from numba import cuda, int32


@cuda.jit
def echoes(x, out):
    table = cuda.shared.array((32, 33), int32)
    lane = cuda.threadIdx.x
    for other in range(32):
        table[other, lane] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        table[lane, x[i]] += 1
    cuda.syncthreads()
    total = 0
    for other in range(32):
        total += table[other, lane]
    cuda.atomic.add(out, lane, total)
