"""12 points: threads outside write."""

import math

from numba import cuda, float32


@cuda.jit
def fused_bias_gelu(x, bias, out):
    col, row = cuda.grid(2)
    if True:
        z = x[row, col] + bias[col]
        inner = float32(math.sqrt(2 / math.pi)) * (z + float32(0.044715) * z * z * z)
        out[row, col] = float32(0.5) * z * (float32(1) + math.tanh(inner))
