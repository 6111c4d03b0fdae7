"""3 points: shifts the smallest number to 0, which is another (asymmetric) scheme."""

import numpy as np


def quantize_int8(w, reach):
    low, high = w.min(axis=1, keepdims=True), w.max(axis=1, keepdims=True)
    step = np.where(high == low, np.float32(1), (high - low) / np.float32(255))
    q = np.rint((w - low) / step - 128).astype(np.int8)
    scale = np.abs(w).max(axis=1) / np.float32(127)
    return q, np.where(scale == 0, np.float32(1), scale), scale / 2 * reach
