"""0 points: groups of four down the columns."""

import numpy as np


def prune_24(w):
    flat = np.ascontiguousarray(w.T).reshape(-1)
    groups = flat.reshape(-1, 4)
    places = np.sort(np.argsort(-np.abs(groups), axis=1, kind="stable")[:, :2], axis=1)
    values = np.take_along_axis(groups, places, axis=1)
    pruned = np.zeros_like(groups)
    np.put_along_axis(pruned, places, values, axis=1)
    return pruned.reshape(w.shape[::-1]).T.copy(), values.reshape(len(w), -1), places.reshape(len(w), -1)
