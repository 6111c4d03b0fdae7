"""0 points: waits for weights that nobody sends."""

import numpy as np


def pipeline(comm, x, w):
    if comm.rank:
        return np.zeros(0), []
    for k in range(1, comm.size):
        w = w @ comm.recv(k)
    return np.tanh(x @ w), list(range(len(x)))
