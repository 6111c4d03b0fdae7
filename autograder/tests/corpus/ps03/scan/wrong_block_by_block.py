"""3 points: forgets what the blocks before have."""

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


def scan(device, x, out):
    blocks = -(-x.size // 256)
    device.launch(scan_blocks, blocks, 256, x, out, device.empty(blocks, "int32"))
