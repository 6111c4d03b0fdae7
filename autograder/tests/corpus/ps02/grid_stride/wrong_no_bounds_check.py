"""0 points: runs past the end in the last round."""

from numba import cuda, float32


@cuda.jit
def grid_stride(raw, dark, gain, out):
    threads = cuda.gridsize(1)
    for k in range(out.size // threads + 1):
        i = k * threads + cuda.grid(1)
        total = float32(0)
        for exposure in range(raw.shape[0]):
            total += raw[exposure, i]
        out[i] = (total / raw.shape[0] - dark[i]) * gain
