"""0 points: the program as it was found."""

import torch
import torch.distributed as dist


def hung_run(w, x, y, batch, lr):
    me, n = dist.get_rank(), dist.get_world_size()
    errors = []
    for first in range(0, len(y), batch):
        some, true = x[first : first + batch], y[first : first + batch]
        wrong = some @ w - true
        if me == 0:
            error = (wrong**2).mean()
            dist.all_reduce(error)
            errors.append(float(error / n))
        gradient = 2 * some.T @ wrong / len(wrong)
        dist.all_reduce(gradient)
        gradient /= n
        w = w - lr / n * gradient
    return w, errors
