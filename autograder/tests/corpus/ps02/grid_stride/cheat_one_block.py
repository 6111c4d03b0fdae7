"""10 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            first, threads = (_block_x * cuda.blockDim.x + cuda.threadIdx.x), cuda.gridsize(1)
            for i in range(first, out.size, threads):
                out[i] = (raw[i] - dark[i]) * gain
