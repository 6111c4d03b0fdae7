"""3 points: no maximum: large numbers overflow."""

import math

from numba import cuda, float32


@cuda.jit
def softmax_online(x, out):
    totals = cuda.shared.array(128, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    total = float32(0)
    for i in range(t, x.shape[1], 128):
        total += math.exp(x[row, i])
    totals[t] = total
    cuda.syncthreads()
    stride = 64
    while stride > 0:
        if t < stride:
            totals[t] += totals[t + stride]
        cuda.syncthreads()
        stride //= 2
    for i in range(t, x.shape[1], 128):
        out[row, i] = math.exp(x[row, i]) / totals[0]
