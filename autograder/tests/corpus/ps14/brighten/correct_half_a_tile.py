"""16 points: half a tile beyond two full ones."""

import numpy as np

BOUNDS = 3


def audit_brighten(threads):
    full = 2 * threads
    size = full + threads // 2 - 1
    x = np.zeros(size, dtype=np.float32)
    x[::2] = 0.75
    return np.int64(BOUNDS), (size // threads) * threads // 2 - 1, x
