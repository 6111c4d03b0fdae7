"""16 points: another size, random whole numbers."""

import numpy as np

SIZES = 2


def audit_row_sums(threads):
    rng = np.random.default_rng(14)
    cols = 6 * threads - 1
    return SIZES, threads + threads, rng.integers(1, 9, (5, cols)).astype(np.float32)
