"""16 points: two rows for each block, the worst case counted."""

import numpy as np

RACE = 4


def audit_centre(blocks, threads):
    worst = sum(row + blocks < 100 for row in range(100))
    x = np.random.default_rng(0).normal(size=(2 * blocks, 512)).astype(np.float32)
    return RACE, worst, x
