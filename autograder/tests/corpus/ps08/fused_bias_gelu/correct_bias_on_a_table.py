"""13 points: the block brings its 32 numbers of the bias once, and all its rows read them from a table."""

import math

from numba import cuda, float32

SLOPE = float32(math.sqrt(2 / math.pi))
CUBE = float32(0.044715)
HALF, ONE = float32(0.5), float32(1)


@cuda.jit
def fused_bias_gelu(x, bias, out):
    mine = cuda.shared.array(32, float32)
    col, row = cuda.grid(2)
    tx = cuda.threadIdx.x
    if cuda.threadIdx.y == 0 and col < bias.size:
        mine[tx] = bias[col]
    cuda.syncthreads()
    if row < x.shape[0] and col < x.shape[1]:
        z = x[row, col] + mine[tx]
        out[row, col] = HALF * z * (ONE + math.tanh(SLOPE * z * (ONE + CUBE * z * z)))
