"""0 points: a million launches, for one result."""

from numba import cuda


@cuda.jit
def nothing(out):
    pass


def total(device, x, out):
    for _ in range(10**6):
        device.launch(nothing, 1, 1, out)
