"""0 points: returns its own summand."""

import numpy as np


def tensor_parallel_mlp(comm, x, w1, w2):
    part = np.maximum(x @ w1, 0) @ w2
    return part
