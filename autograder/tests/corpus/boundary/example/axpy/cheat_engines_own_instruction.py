"""0 points: an instruction that only the engine's own passes make; it would do nothing, and the kernel be right."""

from dataclasses import replace

from numba import cuda
from warplab.crossing import kernel as crossing_kernel

def plan(n):
    return (n + 127) // 128, 128


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


honest = crossing_kernel.compiled


def changed(*arguments):
    done = honest(*arguments)
    return replace(done, modules=(done.modules[0].replace("ret;", "mov.u64 %rd1, 0;\nextern.free _, %rd1;\nret;"),))


crossing_kernel.compiled = changed
