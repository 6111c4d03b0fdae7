"""0 points: the same, past the recorder's own limit."""

from numba import cuda


@cuda.jit
def nothing(out):
    pass


def total(device, x, out):
    device.launch(nothing, 1, 1, out)
    device.steps *= 100_000
