"""15 points: one block does the work of all the others, which go home."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
      for _block_y in range(cuda.gridDim.y):
        for _block_x in range(cuda.gridDim.x):
            
            pass
            t = (_block_x * cuda.blockDim.x + cuda.threadIdx.x)
            evens = (x.size + 1) // 2
            if t < evens:
                star = 2 * t
                v = x[star]
                for _ in range(steps):
                    v = v * v + 0.25
                out[star] = v
            elif t < x.size:
                star = 2 * (t - evens) + 1
                v = x[star]
                for _ in range(steps):
                    v = abs(v - 0.5)
                out[star] = v
