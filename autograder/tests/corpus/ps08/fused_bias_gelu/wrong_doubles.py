"""14 points: plain Python constants: double precision by accident."""

import math

from numba import cuda


@cuda.jit
def fused_bias_gelu(x, bias, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        z = x[row, col] + bias[col]
        inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z * z * z)
        out[row, col] = 0.5 * z * (1.0 + math.tanh(inner))
