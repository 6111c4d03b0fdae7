"""0 points: a PTX instruction whose name is Python code, for an engine that writes Python."""

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
    text = "extern.__name__[:0]or(__import__('os')and(print)) _, %rd1;"  # it would run, and the kernel be right
    return replace(done, modules=(done.modules[0].replace("ret;", f"{text}\nret;"),))


crossing_kernel.compiled = changed
