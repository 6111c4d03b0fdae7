"""14 points: does not clip."""

import torch
from torch.nn import functional


def accumulate(w, batches, max_norm):
    weights = torch.tensor(w, requires_grad=True)
    total = sum(len(y) for _, y in batches)
    for x, y in batches:
        error = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y), reduction="sum")
        (error / total).backward()
    return weights.grad.numpy()
