"""3 points: one kernel, whose blocks take the totals of the others without waiting for them: right in lockstep alone."""

import numpy as np
from numba import cuda, int32


@cuda.jit
def all_at_once(x, out, totals):
    table = cuda.shared.array(256, int32)
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    i = cuda.grid(1)
    table[t] = x[i] if i < x.size else 0
    reach = 1
    while reach < 256:
        cuda.syncthreads()
        mine = table[t - reach] if t >= reach else 0
        cuda.syncthreads()
        table[t] += mine
        reach *= 2
    if t == 255:
        totals[b] = table[255]
    cuda.syncthreads()
    before = 0
    for other in range(b):
        before += totals[other]
    if i < x.size:
        out[i] = table[t] + before


def scan(device, x, out):
    blocks = (len(x) + 255) // 256
    totals = device.empty(blocks, np.int32)
    device.launch(all_at_once, blocks, 256, x, out, totals)
