"""6 points: the strides of a full block of 1,024, without the places that are not there."""

from numba import cuda, float32


@cuda.jit
def hours(x, out):
    table = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    n = min(cuda.blockDim.x, x.size - cuda.blockIdx.x * cuda.blockDim.x)
    if t < n:
        table[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 512
    while stride > 0:
        if t < stride and t + stride < n:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride >>= 1
    if t == 0:
        out[cuda.blockIdx.x] = table[0]
