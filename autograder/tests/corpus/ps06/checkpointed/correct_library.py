"""25 points: torch's own checkpoint, in three segments."""

import torch


def some(x, w):
    for weights in w:
        x = torch.tanh(x @ weights)
    return x


def checkpointed(x, w):
    from torch.utils.checkpoint import checkpoint

    x = x * 1
    for first in range(0, len(w), 4):
        x = checkpoint(some, x, w[first : first + 4], use_reentrant=False)
    return x + 0 * w.sum()
