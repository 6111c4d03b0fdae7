"""12 points: allows for a whole step: rounding is off by half of one."""

import numpy as np


def quantize_int8(w, reach):
    largest = np.abs(w).max(axis=1)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    q = np.rint(w / scale[:, None]).astype(np.int8)
    return q, scale, scale * reach
