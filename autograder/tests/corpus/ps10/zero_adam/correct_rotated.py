"""15 points: the first half as in task 1, on pieces that are numbered one back."""

import numpy as np


def reduce_scatter(comm, x):
    n, me = comm.size, comm.rank
    pieces = [piece.copy() for piece in np.array_split(x, n)]
    for s in range(1, n):
        comm.send((me + 1) % n, pieces[(me - s) % n])
        pieces[(me - s - 1) % n] += comm.recv((me - 1) % n)
    return pieces[me]


def all_gather(comm, piece):
    n, me = comm.size, comm.rank
    pieces = [piece] * n
    for s in range(n - 1):
        comm.send((me + 1) % n, pieces[(me - s) % n])
        pieces[(me - s - 1) % n] = comm.recv((me - 1) % n)
    return np.concatenate(pieces)


def zero_adam(comm, w, gradients, lr):
    mine = np.array_split(w, comm.size)[comm.rank].copy()
    m, v, weights = 0 * mine, 0 * mine, w
    for t in range(1, len(gradients) + 1):
        g = reduce_scatter(comm, gradients[t - 1]) / comm.size
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        mine -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        weights = all_gather(comm, mine)
    return weights, np.append(m, v)
