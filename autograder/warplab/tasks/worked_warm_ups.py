"""An answer to each warm-up, for "show me", and for the figure of chapter 1."""

from numba import cuda, float32


@cuda.jit
def number(out):
    t = cuda.threadIdx.x
    out[t] = t


@cuda.jit
def double(x, out):
    t = cuda.threadIdx.x
    mine = x[t]
    out[t] = 2 * mine


@cuda.jit
def bounds(x, out):
    t = cuda.threadIdx.x
    if t < x.size:
        out[t] = x[t] + 1


@cuda.jit
def plane(out):
    col = cuda.threadIdx.x
    row = cuda.threadIdx.y
    out[row, col] = 10 * row + col


@cuda.jit
def blocks(out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    out[i] = cuda.blockIdx.x


@cuda.jit
def stride(x, out):
    first = cuda.grid(1)
    step = cuda.gridsize(1)
    for i in range(first, x.size, step):
        out[i] = x[i] + 1


@cuda.jit
def shared(x, out):
    table = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    table[t] = x[i]
    cuda.syncthreads()
    out[i] = table[3 - t]


@cuda.jit
def barrier(x, out):
    table = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    table[t] = x[t]
    cuda.syncthreads()
    out[t] = table[(t + 8) % 64]


@cuda.jit
def pair(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + x[i + out.size]


@cuda.jit
def row_sum(x, out):
    row = cuda.grid(1)
    if row < out.size:
        total = float32(0)
        for col in range(x.shape[1]):
            total += x[row, col]
        out[row] = total


@cuda.jit
def atomic(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])


@cuda.jit
def tile(x, out):
    part = cuda.shared.array((2, 2), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    part[ty, tx] = x[row, col]
    cuda.syncthreads()
    out[row, col] = part[0, 0] + part[0, 1] + part[1, 0] + part[1, 1]
