"""8.11 points: row and column exchanged: neighbours write into different rows."""

import math

from numba import cuda, float32


@cuda.jit
def fused_bias_gelu(x, bias, out):
    row, col = cuda.grid(2)
    rows, cols = x.shape
    step = cuda.gridDim.x * cuda.blockDim.x
    for r in range(row, rows, step):
        for c in range(col, cols, cuda.gridDim.y * cuda.blockDim.y):
            z = x[r, c] + bias[c]
            inner = float32(math.sqrt(2 / math.pi)) * (z + float32(0.044715) * z * z * z)
            out[r, c] = float32(0.5) * z * (float32(1) + math.tanh(inner))
