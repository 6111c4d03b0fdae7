"""10 points: a run of neighbours for each thread: eight times the sectors."""

from numba import cuda, float32


@cuda.jit
def grid_stride(raw, dark, gain, out):
    threads = cuda.gridsize(1)
    each = (out.size + threads - 1) // threads
    first = each * cuda.grid(1)
    for i in range(first, min(first + each, out.size)):
        total = float32(0)
        for k in range(raw.shape[0]):
            total += raw[k, i]
        out[i] = (total / raw.shape[0] - dark[i]) * gain
