"""7 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def reduce_atomic(x, total):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            i = (_block_x * cuda.blockDim.x + cuda.threadIdx.x)
            if i < x.size:
                cuda.atomic.add(total, 0, x[i])
