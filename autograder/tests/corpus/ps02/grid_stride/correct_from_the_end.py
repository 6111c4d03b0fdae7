"""17 points: begins at the end and walks to the front, warps of neighbours all the way."""

from numba import cuda, float32


@cuda.jit
def grid_stride(raw, dark, gain, out):
    for i in range(out.size - 1 - cuda.grid(1), -1, -cuda.gridsize(1)):
        total = -raw.shape[0] * dark[i]
        for k in range(raw.shape[0]):
            total += raw[k, i]
        out[i] = total * gain / raw.shape[0]
