"""13 points: turns the table's indices on the way in, not on the way out."""

from numba import cuda, float32


@cuda.jit
def transpose(x, out):
    table = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    if top + ty < x.shape[0] and left + tx < x.shape[1]:
        table[tx, ty] = x[top + ty, left + tx]
    cuda.syncthreads()
    if left + ty < out.shape[0] and top + tx < out.shape[1]:
        out[left + ty, top + tx] = table[ty, tx]
