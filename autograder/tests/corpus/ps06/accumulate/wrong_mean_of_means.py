"""2 points: the mean of the parts, whatever their sizes."""

import torch
from torch.nn import functional


def accumulate(w, batches, max_norm):
    weights = torch.tensor(w, requires_grad=True)
    for x, y in batches:
        error = functional.mse_loss(torch.tensor(x) @ weights, torch.tensor(y), reduction="mean")
        (error / len(batches)).backward()
    torch.nn.utils.clip_grad_norm_(weights, max_norm)
    return weights.grad.numpy()
