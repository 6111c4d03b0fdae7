"""6 points: halves rounded down, and thread 0 adds the odd place that each round would lose."""

from numba import cuda, float32


@cuda.jit
def hours(x, out):
    table = cuda.shared.array(1024, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    table[t] = float32(0)
    if i < x.size:
        table[t] = x[i]
    cuda.syncthreads()
    count = cuda.blockDim.x
    while count > 1:
        half = count // 2
        if t < half:
            table[t] += table[t + half]
            if t == 0 and count % 2 == 1:
                table[0] += table[count - 1]
        cuda.syncthreads()
        count = half
    if t == 0:
        out[cuda.blockIdx.x] = table[0]
