"""2 points: output by output, as the threads do it."""

import numpy as np


def layer_cause(w, x):
    y = np.zeros(len(w), np.float32)
    for out in range(len(w)):
        for k in range(len(w)):
            y[out] += x[k] * w[k, out]
    return y
