"""5 points: cuts the weights as they are: pieces of an uneven number cannot be scattered."""

import torch
import torch.distributed as dist


def zero_adam(w, gradients, lr):
    n, me = dist.get_world_size(), dist.get_rank()
    weights, size = w.clone(), len(w) // n
    mine = weights[me * size : (me + 1) * size].clone()
    m, v, g = (torch.zeros_like(mine) for _ in range(3))
    for t, gradient in enumerate(gradients, 1):
        dist.reduce_scatter_single(g, gradient)
        g /= n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mine -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
        dist.all_gather_single(weights, mine)
    return weights, torch.cat([m, v])
