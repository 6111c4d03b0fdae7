"""6 points: plain data parallel: every rank keeps all moments."""

import torch
import torch.distributed as dist


def zero_adam(w, gradients, lr):
    n = dist.get_world_size()
    weights, m, v = w.clone(), 0 * w, 0 * w
    for t, gradient in enumerate(gradients, 1):
        g = gradient.clone()
        dist.all_reduce(g)
        g /= n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        weights -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return weights, torch.cat([m, v])
