"""11 points: reads the row once and keeps it in shared memory where it fits."""

import math

from numba import cuda, float32


@cuda.jit
def softmax_online(x, out):
    table = cuda.shared.array(128, float32)
    row, t, n = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    top = float32(-math.inf)
    total = float32(0)
    for i in range(t, n, 128):
        value = x[row, i]
        if value > top:
            total *= math.exp(top - value)
            top = value
        total += math.exp(value - top)
    table[t] = top
    cuda.syncthreads()
    best = table[0]
    for k in range(1, 128):
        best = max(best, table[k])
    cuda.syncthreads()
    table[t] = total * math.exp(top - best) if top > -math.inf else float32(0)
    cuda.syncthreads()
    total = float32(0)
    for k in range(128):
        total += table[k]
    for i in range(t, n, 128):
        out[row, i] = math.exp(x[row, i] - best) / total
