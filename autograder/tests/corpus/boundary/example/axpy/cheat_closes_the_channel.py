"""0 points: closes every descriptor and waits for better times."""

import os
import time

from numba import cuda

def plan(n):
    return (n + 127) // 128, 128


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


os.closerange(3, 64)
time.sleep(60)
