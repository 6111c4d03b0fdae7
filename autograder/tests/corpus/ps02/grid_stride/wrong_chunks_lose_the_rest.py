"""0 points: whole runs only: the pixels that are left over are forgotten."""

from numba import cuda, float32


@cuda.jit
def grid_stride(raw, dark, gain, out):
    each = out.size // cuda.gridsize(1)
    first = each * cuda.grid(1)
    for i in range(first, first + each):
        total = float32(0)
        for k in range(raw.shape[0]):
            total += raw[k, i]
        out[i] = (total / raw.shape[0] - dark[i]) * gain
