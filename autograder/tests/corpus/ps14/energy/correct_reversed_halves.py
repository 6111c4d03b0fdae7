"""16 points: half of each tile is reversed."""

import numpy as np

REMEMBERS = 6


def audit_energy(threads):
    first = np.tile(np.arange(threads, dtype=np.float32), 8)
    second = first.reshape(8, threads).copy()
    middle = slice(threads // 2, threads - 1)
    second[:, middle] = second[:, middle][:, ::-1]
    return REMEMBERS, 4 * threads, first, second.ravel()
