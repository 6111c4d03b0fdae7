"""0 points: trains alone and takes the mean of the weights."""

import torch
import torch.distributed as dist


def data_parallel(w, x, y, steps, lr):
    weights = torch.cat(w)
    for _ in range(steps):
        weights = weights - lr * 2 * x.T @ (x @ weights - y) / len(y)
    dist.all_reduce(weights)
    return weights / dist.get_world_size()
