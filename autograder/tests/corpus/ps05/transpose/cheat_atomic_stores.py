"""5 points: no table: every lane writes into a row of its own, with atomics."""

from numba import cuda, int32
from numba.cuda import libdevice


@cuda.jit
def transpose(x, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        cuda.atomic.exch(out.view(int32), (col, row), libdevice.float_as_int(x[row, col]))
