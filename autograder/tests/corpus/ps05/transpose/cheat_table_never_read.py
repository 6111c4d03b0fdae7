"""5 points: fills a table without conflicts, and then stores naively."""

from numba import cuda, float32


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((32, 33), float32)
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
        out[col, row] = tile[cuda.threadIdx.y, cuda.threadIdx.x]
