"""0 points: relu at the end."""

import numpy as np


def ring_all_reduce(comm, x):
    n, me = comm.size, comm.rank
    after, before = (me + 1) % n, (me - 1) % n
    pieces = [piece.copy() for piece in np.array_split(x, n)]
    for s in range(n - 1):
        comm.send(after, pieces[(me - s) % n])
        pieces[(me - s - 1) % n] += comm.recv(before)
    for s in range(n - 1):
        comm.send(after, pieces[(me + 1 - s) % n])
        pieces[(me - s) % n] = comm.recv(before)
    return np.concatenate(pieces)


def tensor_parallel_mlp(comm, x, w1, w2):
    part = x @ w1 @ w2
    return np.maximum(ring_all_reduce(comm, part.ravel()).reshape(part.shape), 0)
