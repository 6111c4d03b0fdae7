"""3 points: adds the total of the one block before, not of all."""

from numba import cuda, int32


@cuda.jit
def scan_blocks(x, out, totals):
    table = cuda.shared.array(256, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    table[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    reach = 1
    while reach < 256:
        before = table[t - reach] if t >= reach else 0
        cuda.syncthreads()
        table[t] += before
        cuda.syncthreads()
        reach *= 2
    if i < x.size:
        out[i] = table[t]
    if t == 255:
        totals[cuda.blockIdx.x] = table[t]


@cuda.jit
def add_before(out, totals):
    i = cuda.grid(1)
    if cuda.blockIdx.x > 0 and i < out.size:
        out[i] += totals[cuda.blockIdx.x - 1]


def scan(device, x, out):
    blocks = -(-x.size // 256)
    totals = device.empty(blocks, "int32")
    device.launch(scan_blocks, blocks, 256, x, out, totals)
    if blocks > 1:
        device.launch(add_before, blocks, 256, out, totals)
