"""15.83 points: a mean of what lies above the first exposure, which is read twice."""

from numba import cuda, float32


@cuda.jit
def grid_stride(raw, dark, gain, out):
    exposures, pixels = raw.shape
    for i in range(cuda.grid(1), pixels, cuda.gridsize(1)):
        first, above = raw[0, i], float32(0)
        for e in range(exposures):
            above += raw[e, i] - first
        out[i] = (first + above / exposures - dark[i]) * gain
