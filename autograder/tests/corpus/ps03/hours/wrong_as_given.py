"""0 points: the given program, with nothing mended."""

from numba import cuda, float32


@cuda.jit
def hours(x, out):
    table = cuda.shared.array(1024, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < x.size:
        table[t] = x[i]
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            table[t] += table[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = table[0]
