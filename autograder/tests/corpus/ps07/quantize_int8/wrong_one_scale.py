"""0 points: one scale for the whole matrix, so that small rows become zeros."""

import numpy as np


def quantize_int8(w, reach):
    largest = np.full(len(w), np.abs(w).max())
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    q = np.rint(w / scale[:, None]).astype(np.int8)
    return q, scale, scale / 2 * reach
