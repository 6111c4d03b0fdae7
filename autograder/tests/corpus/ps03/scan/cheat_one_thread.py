"""8 points: one thread walks through everything."""

from numba import cuda


@cuda.jit
def walk(x, out):
    if cuda.grid(1) == 0:
        running = 0
        for i in range(x.size):
            running += x[i]
            out[i] = running


def scan(device, x, out):
    device.launch(walk, 1, 1, x, out)
