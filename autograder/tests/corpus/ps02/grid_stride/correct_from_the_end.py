"""17 points: begins at the end and walks to the front, warps of neighbours all the way."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    for i in range(out.size - 1 - cuda.grid(1), -1, -cuda.gridsize(1)):
        out[i] = (raw[i] - dark[i]) * gain
