"""9 points: one block does the work of all the others, which go home."""

import math

from numba import cuda, float32


@cuda.jit
def fused_bias_gelu(x, bias, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            if row < x.shape[0] and col < x.shape[1]:
                z = x[row, col] + bias[col]
                inner = float32(math.sqrt(2 / math.pi)) * (z + float32(0.044715) * z * z * z)
                out[row, col] = float32(0.5) * z * (float32(1) + math.tanh(inner))
