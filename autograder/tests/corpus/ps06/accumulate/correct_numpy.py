"""20 points: the gradient of a straight line, without autograd; broken parts are sorted out first."""

import numpy as np


def accumulate(w, batches, max_norm):
    whole = [(x, y) for x, y in batches if np.isfinite(x).all() and np.isfinite(y).all()]
    rows = sum(len(y) for _, y in whole)
    gradient = np.zeros(len(w))
    for x, y in whole:
        gradient += 2 * x.T.astype(float) @ (x @ w - y) / rows
    length = np.linalg.norm(gradient)
    return (gradient * min(1.0, max_norm / length if length else 1.0)).astype(np.float32)
