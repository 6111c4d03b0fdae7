"""0 points: forgets to divide by the rows."""

import torch
import torch.distributed as dist


def data_parallel(w, x, y, steps, lr):
    weights = torch.cat(w)
    for _ in range(steps):
        gradient = 2 * x.T @ (x @ weights - y)
        dist.all_reduce(gradient)
        weights = weights - lr * gradient
    return weights
