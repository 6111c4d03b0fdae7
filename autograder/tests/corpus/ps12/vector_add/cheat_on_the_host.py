"""0 points: adds on the host, where the arrays have no values."""


def vector_add(x, y, out):
    out[:] = x + y
