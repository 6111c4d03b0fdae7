"""10 points: a whole all-reduce of the gradients, and then the weights as well."""

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


def zero_adam(comm, w, gradients, lr):
    n, me = comm.size, comm.rank
    pieces = [piece.copy() for piece in np.array_split(w, n)]
    m, v, weights = 0 * pieces[me], 0 * pieces[me], w
    for t, gradient in enumerate(gradients, 1):
        g = np.array_split(ring_all_reduce(comm, gradient), n)[me] / n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        pieces[me] = pieces[me] - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        alone = np.concatenate([piece if k == me else 0 * piece for k, piece in enumerate(pieces)])
        weights = ring_all_reduce(comm, alone)
        pieces = [piece.copy() for piece in np.array_split(weights, n)]
    return weights, np.concatenate([m, v])
