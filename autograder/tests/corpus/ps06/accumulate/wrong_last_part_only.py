"""0 points: forgets what came before."""

import torch
from torch.nn import functional


def accumulate(w, batches, max_norm):
    weights = torch.tensor(w, requires_grad=True)
    total = sum(len(y) for _, y in batches)
    for x, y in batches:
        weights.grad = None
        error = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y), reduction="sum")
        (error / total).backward()
    torch.nn.utils.clip_grad_norm_(weights, max_norm)
    return weights.grad.numpy()
