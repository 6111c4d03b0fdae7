"""5 points: chapter 6's loop: weighted parts, one backward() after the other, neither clipped nor looked at."""

import torch
from torch.nn import functional


def accumulate(w, batches, max_norm):
    weights = torch.tensor(w, requires_grad=True)
    rows = sum(len(y) for _, y in batches)
    for x, y in batches:
        loss = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y)) * len(y) / rows
        loss.backward()
    return weights.grad.numpy()
