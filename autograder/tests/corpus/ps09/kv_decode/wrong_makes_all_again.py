"""14 points: computes every key and value again for each token."""

import math

import numpy as np


def kv_decode(x, wq, wk, wv):
    keys, values = np.empty_like(x), np.empty_like(x)
    out, made = np.empty_like(x), 0
    for t in range(len(x)):
        keys[: t + 1], values[: t + 1] = x[: t + 1] @ wk, x[: t + 1] @ wv
        made += 2 * (t + 1)
        scores = keys[: t + 1] @ (x[t] @ wq) / np.float32(math.sqrt(x.shape[1]))
        weights = np.exp(scores - scores.max())
        out[t] = weights / weights.sum() @ values[: t + 1]
    return out, made
