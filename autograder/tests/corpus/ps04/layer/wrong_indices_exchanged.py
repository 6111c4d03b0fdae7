"""3 points: right scores, by lanes that all walk along the row, in 64 bits."""

from numba import cuda


@cuda.jit
def layer(w, x, y):
    out = 8 * cuda.blockIdx.x + cuda.threadIdx.y
    if out < y.size:
        score = 0.0
        for k in range(w.shape[1]):
            score += x[k] * w[out, k]
        y[out] = score
