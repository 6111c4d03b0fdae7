"""0 points: the first half as in task 1, which leaves the finished piece r at rank r - 1."""

import torch
import torch.distributed as dist


def exchange(give, take):
    """Pass `give` to the next rank; what the rank before passed, in a tensor like `take`."""
    n, me = dist.get_world_size(), dist.get_rank()
    inbox = torch.empty_like(take)
    sending = dist.isend(give, (me + 1) % n)
    dist.recv(inbox, (me - 1) % n)
    sending.wait()
    return inbox


def zero_adam(w, gradients, lr):
    n, me = dist.get_world_size(), dist.get_rank()
    size = -(-len(w) // n)
    pad = (0, n * size - len(w))
    weights = torch.nn.functional.pad(w, pad).view(n, size)
    m, v = torch.zeros(2, size, dtype=w.dtype)
    for t, gradient in enumerate(gradients, 1):
        pieces = torch.nn.functional.pad(gradient, pad).view(n, size)
        for s in range(n - 1):
            take = pieces[(me - s - 1) % n]
            take += exchange(pieces[(me - s) % n], take)
        g = pieces[me] / n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        weights[me] -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
        for s in range(n - 1):
            take = weights[(me - s - 1) % n]
            take.copy_(exchange(weights[(me - s) % n], take))
    return weights.flatten()[: len(w)], torch.cat([m, v])
