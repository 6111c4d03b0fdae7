"""11 points: adds a half and cuts off, which sends 2.5 to 3."""

import numpy as np


def quantize_int8(w, reach):
    largest = np.abs(w).max(axis=1)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    q = np.floor(w / scale[:, None] + 0.5).astype(np.int8)
    return q, scale, scale / 2 * reach
