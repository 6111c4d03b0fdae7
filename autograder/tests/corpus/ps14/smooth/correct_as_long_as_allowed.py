"""16 points: random numbers, the worst case searched."""

import numpy as np

SLOWER = 1


def audit_smooth(threads):
    total, lanes_apart = 4 * threads, 32 // 4
    smallest = next(n for n in range(1, 100 * threads) if -(-n // total) == lanes_apart)
    return SLOWER, smallest, np.random.default_rng(5).random(30 * threads, dtype=np.float32)
