"""0 points: the sum of the gradients, not their mean."""

import torch
import torch.distributed as dist


def zero_adam(w, gradients, lr):
    n, me = dist.get_world_size(), dist.get_rank()
    size = -(-len(w) // n)
    pad = (0, n * size - len(w))
    weights = torch.nn.functional.pad(w, pad)
    mine = weights[me * size : (me + 1) * size].clone()
    m, v, g = (torch.zeros_like(mine) for _ in range(3))
    for t, gradient in enumerate(gradients, 1):
        dist.reduce_scatter_single(g, torch.nn.functional.pad(gradient, pad))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mine -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
        dist.all_gather_single(weights, mine)
    return weights[: len(w)], torch.cat([m, v])
