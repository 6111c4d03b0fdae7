"""10 points: one block does the work of all the others, which go home."""

from numba import cuda, float32


@cuda.jit
def stencil_shared(x, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            tile = cuda.shared.array((34, 34), float32)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            top, left = 32 * _block_y - 1, 32 * _block_x - 1
            for r in range(ty, 34, 32):
                for c in range(tx, 34, 32):
                    row, col = top + r, left + c
                    inside = 0 <= row < x.shape[0] and 0 <= col < x.shape[1]
                    tile[r, c] = x[row, col] if inside else float32(0)
            cuda.syncthreads()
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            if row < x.shape[0] and col < x.shape[1]:
                here = tile[ty + 1, tx + 1]
                around = tile[ty, tx + 1] + tile[ty + 2, tx + 1] + tile[ty + 1, tx] + tile[ty + 1, tx + 2]
                out[row, col] = here + float32(0.2) * (around - 4 * here)
            cuda.syncthreads()
