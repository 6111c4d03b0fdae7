"""0 points: the given program, with nothing mended."""

from numba import cuda


@cuda.jit
def layer(w, x, y):
    out = cuda.grid(1)
    if out < y.size:
        score = 0.0
        for k in range(w.shape[0]):
            score += x[k] * w[k, out]
        y[out] = score
