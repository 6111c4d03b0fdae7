"""17 points: while loops instead of range, and a sum of 64 bits."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    i, exposures = cuda.grid(1), raw.shape[0]
    while i < out.size:
        total, k = 0.0, 0
        while k < exposures:
            total += raw[k, i]
            k += 1
        out[i] = gain * (total / exposures) - gain * dark[i]
        i += cuda.gridsize(1)
