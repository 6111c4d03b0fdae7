"""10 points: a whole all-reduce of the gradients, and then one of the weights as well."""

import torch
import torch.distributed as dist


def zero_adam(w, gradients, lr):
    n, me = dist.get_world_size(), dist.get_rank()
    size = -(-len(w) // n)
    pad = (0, n * size - len(w))
    weights = torch.nn.functional.pad(w, pad).view(n, size)
    mine = weights[me].clone()
    m, v = torch.zeros_like(mine), torch.zeros_like(mine)
    for t, gradient in enumerate(gradients, 1):
        total = torch.nn.functional.pad(gradient, pad)
        dist.all_reduce(total)
        g = total.view(n, size)[me] / n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mine -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
        weights.zero_()
        weights[me] = mine
        dist.all_reduce(weights)
    return weights.flatten()[: len(w)], torch.cat([m, v])
