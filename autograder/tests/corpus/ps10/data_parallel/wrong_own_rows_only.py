"""0 points: every rank trains alone."""

import torch


def data_parallel(w, x, y, steps, lr):
    weights = torch.cat(w)
    for _ in range(steps):
        weights = weights - lr * 2 * x.T @ (x @ weights - y) / len(y)
    return weights
