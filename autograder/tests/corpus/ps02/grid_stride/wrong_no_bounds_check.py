"""0 points: runs past the end in the last round."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    threads = cuda.gridsize(1)
    for k in range(out.size // threads + 1):
        i = k * threads + cuda.grid(1)
        out[i] = (raw[i] - dark[i]) * gain
