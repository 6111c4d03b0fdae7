"""7 points: one block does the work of all the others, which go home."""

from numba import cuda, float32


@cuda.jit
def transpose(x, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            tile = cuda.shared.array((32, 33), float32)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            if row < x.shape[0] and col < x.shape[1]:
                tile[ty, tx] = x[row, col]
            cuda.syncthreads()
            col, row = 32 * _block_y + tx, 32 * _block_x + ty
            if row < out.shape[0] and col < out.shape[1]:
                out[row, col] = tile[tx, ty]
            cuda.syncthreads()
