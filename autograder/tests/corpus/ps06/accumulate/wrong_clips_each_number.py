"""14 points: holds each number of the gradient within max_norm, instead of its length."""

import torch
from torch.nn import functional


def accumulate(w, batches, max_norm):
    weights = torch.tensor(w, requires_grad=True)
    total = sum(len(y) for _, y in batches)
    for x, y in batches:
        error = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y), reduction="sum")
        (error / total).backward()
    torch.nn.utils.clip_grad_value_(weights, max_norm)
    return weights.grad.numpy()
