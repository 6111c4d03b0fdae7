"""15 points: an empty array says that nothing follows."""

import numpy as np


def pipeline(comm, x, w):
    first, last = comm.rank == 0, comm.rank + 1 == comm.size
    coming, out = iter(x), []
    ticks = 0
    while True:
        one = next(coming, np.zeros(0)) if first else comm.recv(comm.rank - 1)
        if one.size:
            one = np.tanh(one @ w)
            out.append(one)
            ticks += 1
        if not last:
            comm.send(comm.rank + 1, one)
        if not one.size:
            break
    return np.array(out) if last else np.zeros(0), [comm.rank + k for k in range(ticks)]
