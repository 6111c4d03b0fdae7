"""6 points: sends all micro-batches at once: nobody works at the same time."""

import numpy as np


def pipeline(comm, x, w):
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    x = x if first else comm.recv(comm.rank - 1)
    out = np.tanh(x @ w)
    if not last:
        comm.send(comm.rank + 1, out)
    micro = len(x)
    return out if last else np.zeros(0), [comm.rank * micro + k for k in range(micro)]
