"""0 points: a plan of objects that claim to be any number."""

from numba import cuda




@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


class Any:
    def __index__(self):
        return 1

    def __eq__(self, other):
        return True

    def __mul__(self, other):
        return 0


def plan(n):
    return Any(), Any()
