"""6 points: looks at tokens that have not come yet."""

import math

import numpy as np


def kv_decode(x, wq, wk, wv, keys, values):
    keys, values = np.concatenate([keys, x @ wk]), np.concatenate([values, x @ wv])
    scores = (x @ wq) @ keys.T / np.float32(math.sqrt(x.shape[1]))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values, keys, values
