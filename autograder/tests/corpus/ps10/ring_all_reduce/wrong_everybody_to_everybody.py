"""12 points: all send all to all."""

import numpy as np


def ring_all_reduce(comm, x):
    others = [k for k in range(comm.size) if k != comm.rank]
    for k in others:
        comm.send(k, x)
    return x + sum((comm.recv(k) for k in others), np.zeros_like(x))
