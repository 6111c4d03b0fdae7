"""9 points: a reduction for each layer: right, with many messages."""

import torch
import torch.distributed as dist


def data_parallel(w, x, y, steps, lr):
    weights, rows = torch.cat(w), torch.tensor(len(y))
    dist.all_reduce(rows)
    for _ in range(steps):
        gradients = (2 * x.T @ (x @ weights - y)).split([len(layer) for layer in w])
        for gradient in gradients:
            dist.all_reduce(gradient)
        weights = weights - lr * torch.cat(gradients) / rows
    return weights
