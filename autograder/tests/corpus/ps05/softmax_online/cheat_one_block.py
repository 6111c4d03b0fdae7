"""6 points: one block does the work of all the others, which go home."""

import math

from numba import cuda, float32


@cuda.jit
def softmax_online(x, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            tops = cuda.shared.array(128, float32)
            totals = cuda.shared.array(128, float32)
            row, t = _block_x, cuda.threadIdx.x
            top, total = float32(-math.inf), float32(0)
            for i in range(t, x.shape[1], 128):
                new = max(top, x[row, i])
                total = total * math.exp(top - new) + math.exp(x[row, i] - new)
                top = new
            tops[t], totals[t] = top, total
            cuda.syncthreads()
            stride = 64
            while stride > 0:
                if t < stride and tops[t + stride] > -math.inf:
                    new = max(tops[t], tops[t + stride])
                    mine = totals[t] * math.exp(tops[t] - new)
                    totals[t] = mine + totals[t + stride] * math.exp(tops[t + stride] - new)
                    tops[t] = new
                cuda.syncthreads()
                stride //= 2
            for i in range(t, x.shape[1], 128):
                out[row, i] = math.exp(x[row, i] - tops[0]) / totals[0]
            cuda.syncthreads()
