"""0 points: the library's product where a kernel was asked for."""

import numpy as np


def matmul_naive(a, b, c):
    np.matmul(a, b, out=c)
