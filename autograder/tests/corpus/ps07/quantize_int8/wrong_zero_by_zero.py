"""11 points: divides a row of zeros by its largest number."""

import numpy as np


def quantize_int8(w, reach):
    with np.errstate(invalid="ignore"):
        scale = np.abs(w).max(axis=1) / np.float32(127)
        q = np.rint(w / scale[:, None]).astype(np.int8)
        bound = np.abs(w - scale[:, None] * q).max(axis=1) * reach
    return q, scale, bound
