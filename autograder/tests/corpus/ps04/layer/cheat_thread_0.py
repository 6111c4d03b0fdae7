"""4 points: lane 0 adds up the whole row, and the others look on."""

from numba import cuda, float32


@cuda.jit
def layer(w, x, y):
    out = 8 * cuda.blockIdx.x + cuda.threadIdx.y
    if out < y.size and cuda.threadIdx.x == 0:
        score = float32(0)
        for k in range(x.size):
            score += w[out, k] * x[k]
        y[out] = score
