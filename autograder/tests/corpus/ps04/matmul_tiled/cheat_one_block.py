"""15 points: one block does the work of all the others, which go home."""

from numba import cuda, float32

TILE = 16


@cuda.jit
def matmul_tiled(a, b, c):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            col, row = (_block_x * cuda.blockDim.x + cuda.threadIdx.x, _block_y * cuda.blockDim.y + cuda.threadIdx.y)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            tile_a = cuda.shared.array((TILE, TILE), float32)
            tile_b = cuda.shared.array((TILE, TILE), float32)
            acc = float32(0)
            M, N = c.shape
            K = a.shape[1]
            for start in range(0, K, TILE):
                tile_a[ty, tx] = float32(0)
                tile_b[ty, tx] = float32(0)
                if row < M and start + tx < K:
                    tile_a[ty, tx] = a[row, start + tx]
                if start + ty < K and col < N:
                    tile_b[ty, tx] = b[start + ty, col]
                cuda.syncthreads()
                for k in range(TILE):
                    acc += tile_a[ty, k] * tile_b[k, tx]
                cuda.syncthreads()
            if row < M and col < N:
                c[row, col] = acc
            cuda.syncthreads()
