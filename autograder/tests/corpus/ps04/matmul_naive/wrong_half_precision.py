"""0 points: sums in 16 bits."""

import numpy as np
from numba import cuda


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if col >= c.shape[1] or row >= c.shape[0]:
        return
    acc = np.float16(0)
    for k in range(a.shape[1]):
        acc = np.float16(acc + np.float16(a[row, k] * b[k, col]))
    c[row, col] = acc
