"""10 points: a run of neighbours for each thread: eight times the sectors."""

from numba import cuda


@cuda.jit
def grid_stride(raw, dark, gain, out):
    threads = cuda.gridsize(1)
    each = (out.size + threads - 1) // threads
    first = each * cuda.grid(1)
    for i in range(first, min(first + each, out.size)):
        out[i] = (raw[i] - dark[i]) * gain
