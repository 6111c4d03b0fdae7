"""6 points: the constant made once, and each number read into a variable."""

import numpy as np
from numba import cuda

HUNDRED = np.float32(100)


@cuda.jit
def dimming(before, now, out):
    for i in range(cuda.grid(1), before.size, cuda.gridsize(1)):
        b, n = before[i], now[i]
        out[i] = (b - n) / b * HUNDRED
