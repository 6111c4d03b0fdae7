"""12 points: draws are won by the later place."""

import numpy as np


def prune_24(w):
    groups = w.reshape(len(w), -1, 4)
    places = np.sort(3 - np.argsort(-np.abs(groups[:, :, ::-1]), axis=2, kind="stable")[:, :, :2], axis=2)
    values = np.take_along_axis(groups, places, axis=2)
    pruned = np.zeros_like(groups)
    np.put_along_axis(pruned, places, values, axis=2)
    return pruned.reshape(w.shape), values.reshape(len(w), -1), places.reshape(len(w), -1)
