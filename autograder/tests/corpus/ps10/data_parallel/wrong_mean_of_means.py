"""13 points: the mean of the ranks' means."""

import torch
import torch.distributed as dist


def data_parallel(w, x, y, steps, lr):
    weights = torch.cat(w)
    for _ in range(steps):
        gradient = 2 * x.T @ (x @ weights - y) / len(y)
        dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
        weights = weights - lr * gradient
    return weights
