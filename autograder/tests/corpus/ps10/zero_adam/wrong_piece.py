"""0 points: updates the piece that task 1 leaves at a rank."""

import numpy as np


def zero_adam(comm, w, gradients, lr):
    n, me = comm.size, comm.rank
    after, before = (me + 1) % n, (me - 1) % n
    weights = [piece.copy() for piece in np.array_split(w, n)]
    m, v = np.zeros_like(weights[me]), np.zeros_like(weights[me])
    for t, gradient in enumerate(gradients, 1):
        pieces = [piece.copy() for piece in np.array_split(gradient, n)]
        for s in range(n - 1):
            comm.send(after, pieces[(me - s) % n])
            pieces[(me - s - 1) % n] += comm.recv(before)
        g = pieces[me] / n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        weights[me] -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        for s in range(n - 1):
            comm.send(after, weights[(me - s) % n])
            weights[(me - s - 1) % n] = comm.recv(before)
    return np.concatenate(weights), np.concatenate([m, v])
