"""8 points: sends its part of the hidden layer to all."""

import numpy as np


def tensor_parallel_mlp(comm, x, w1, w2):
    mine = [np.maximum(x @ w1, 0), w2]
    others = [k for k in range(comm.size) if k != comm.rank]
    for k in others:
        for array in mine:
            comm.send(k, array)
    parts = {comm.rank: mine} | {k: [comm.recv(k), comm.recv(k)] for k in others}
    return sum(parts[k][0] @ parts[k][1] for k in range(comm.size))
