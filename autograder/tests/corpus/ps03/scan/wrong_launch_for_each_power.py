"""8 points: a launch for each power of two: right, with many passes over the data."""

from numba import cuda


@cuda.jit
def add_shifted(x, out, reach):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + x[i - reach] if i >= reach else x[i]


def scan(device, x, out):
    blocks, reach = -(-x.size // 256), 1
    here, there = device.empty(x.shape, "int32"), device.empty(x.shape, "int32")
    device.copy(here, x)
    while reach < x.size:
        device.launch(add_shifted, blocks, 256, here, there, reach)
        here, there, reach = there, here, 2 * reach
    device.copy(out, here)
