"""15 points: rows drawn about two levels."""

import numpy as np

RIGHT = 0


def audit_variance(threads):
    rng = np.random.default_rng(3)
    rows = []
    for row in range(8):
        level = (700 + 30 * row) * (1 if row % 2 else -1)
        low = rng.uniform(level - 0.6, level - 0.5, threads)
        high = rng.uniform(level + 0.5, level + 0.6, 15 * threads)
        rows.append(np.concatenate([low, high[: threads + 5]]))
    return RIGHT, np.array(rows, np.float32)
