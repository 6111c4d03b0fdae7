"""0 points: the chapter's GELU, with erf; the tanh form differs from it in the fourth digit."""

import math

from numba import cuda, float32


@cuda.jit
def fused_bias_gelu(x, bias, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        z = x[row, col] + bias[col]
        out[row, col] = float32(0.5) * z * (float32(1) + math.erf(z * float32(0.5**0.5)))
