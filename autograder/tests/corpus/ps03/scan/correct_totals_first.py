"""13 points: blocks add up first, and scan only when they know what lies before them: n numbers less to write."""

from numba import cuda, int32


@cuda.jit
def block_totals(x, totals):
    table = cuda.shared.array(256, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    table[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride:
            table[t] += table[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        totals[cuda.blockIdx.x] = table[0]


@cuda.jit
def scan_after(x, totals, out):
    table = cuda.shared.array((2, 256), int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    mine = x[i] if i < x.size else int32(0)
    if t == 0 and cuda.blockIdx.x > 0:
        mine += totals[cuda.blockIdx.x - 1]
    now = 0
    for k in range(8):
        table[now, t] = mine
        cuda.syncthreads()
        if t >= 1 << k:
            mine += table[now, t - (1 << k)]
        now = 1 - now
    if i < x.size:
        out[i] = mine


def scan(device, x, out):
    blocks = (x.size + 255) // 256
    totals = device.empty(blocks, "int32")
    scanned = device.empty(blocks, "int32")
    if blocks > 1:
        device.launch(block_totals, blocks, 256, x, totals)
        scan(device, totals, scanned)
    device.launch(scan_after, blocks, 256, x, scanned, out)
