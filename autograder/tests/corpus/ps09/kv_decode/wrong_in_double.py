"""0 points: np.sqrt makes a double of everything, and `out` is asked for in float32; the reason says how to convert it."""

import numpy as np


def kv_decode(x, wq, wk, wv):
    keys, values, out = [], [], []
    for row in x:
        keys.append(row @ wk)
        values.append(row @ wv)
        scores = np.stack(keys) @ (row @ wq) / np.sqrt(len(row))
        weights = np.exp(scores - scores.max())
        out.append(weights / weights.sum() @ np.stack(values))
    return np.array(out), len(keys) + len(values)
