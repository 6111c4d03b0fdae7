"""0 points: half of each row, wherever they stand."""

import numpy as np


def prune_24(w):
    keep = np.sort(np.argsort(-np.abs(w), axis=1, kind="stable")[:, : w.shape[1] // 2], axis=1)
    values = np.take_along_axis(w, keep, axis=1)
    pruned = np.zeros_like(w)
    np.put_along_axis(pruned, keep, values, axis=1)
    return pruned, values, keep % 4
