"""20 points: the ring the other way round."""

import numpy as np


def ring_all_reduce(comm, x):
    n, me = comm.size, comm.rank
    if n == 1:
        return x.copy()
    pieces = [piece.copy() for piece in np.array_split(x, n)]
    for s in range(n - 1):
        comm.send((me - 1) % n, pieces[(me + s) % n])
        pieces[(me + s + 1) % n] += comm.recv((me + 1) % n)
    for s in range(n - 1):
        comm.send((me - 1) % n, pieces[(me + s - 1) % n])
        pieces[(me + s) % n] = comm.recv((me + 1) % n)
    return np.concatenate(pieces)
