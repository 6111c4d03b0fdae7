"""20 points: the gradient of a straight line, without autograd."""

import numpy as np


def accumulate(w, batches, max_norm):
    rows = sum(len(y) for _, y in batches)
    gradient = np.zeros(len(w))
    for x, y in batches:
        gradient += 2 * x.T.astype(float) @ (x @ w - y) / rows
    length = np.linalg.norm(gradient)
    return (gradient * min(1.0, max_norm / length)).astype(np.float32)
