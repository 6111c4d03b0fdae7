"""13 points: a ring for each layer: right, with many messages."""

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


def data_parallel(comm, w, x, y, steps, lr):
    weights = np.concatenate(w)
    rows = ring_all_reduce(comm, np.array([float(len(y))]))[0]
    edges = np.cumsum([0] + [len(layer) for layer in w])
    for _ in range(steps):
        mine = 2 * x.T @ (x @ weights - y)
        parts = [ring_all_reduce(comm, mine[a:b]) for a, b in zip(edges, edges[1:])]
        weights = weights - lr * np.concatenate(parts) / rows
    return weights
