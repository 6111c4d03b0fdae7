"""6 points: the plan of the third case puts another kernel in place; it is the one that the next case would run."""

from numba import cuda

calls = []


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


right = axpy


def plan(n):
    global axpy
    calls.append(n)
    if len(calls) == 2:
        axpy = empty
    return (n + 127) // 128, 128


@cuda.jit
def empty(alpha, x, y, out):
    pass
