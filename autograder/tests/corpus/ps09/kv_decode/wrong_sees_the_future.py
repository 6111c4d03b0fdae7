"""6 points: looks at tokens that have not come yet."""

import math

import numpy as np


def kv_decode(x, wq, wk, wv):
    scores = (x @ wq) @ (x @ wk).T / np.float32(math.sqrt(x.shape[1]))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ (x @ wv), 2 * len(x)
