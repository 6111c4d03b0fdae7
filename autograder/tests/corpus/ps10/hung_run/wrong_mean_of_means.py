"""4 points: each rank's own mean, averaged over the ranks; a rank without rows brings zeros."""

import torch
import torch.distributed as dist


def hung_run(w, x, y, batch, lr):
    n, errors = dist.get_world_size(), []
    steps = torch.tensor(-(-len(y) // batch))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    for first in range(0, int(steps) * batch, batch):
        some, true = x[first : first + batch], y[first : first + batch]
        wrong = some @ w - true
        rows = max(len(wrong), 1)
        error, gradient = (wrong**2).sum() / rows, 2 * some.T @ wrong / rows
        dist.all_reduce(error)
        dist.all_reduce(gradient)
        if dist.get_rank() == 0:
            errors.append(float(error / n))
        w = w - lr * gradient / n
    return w, errors
