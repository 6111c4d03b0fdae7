"""0 points: returns its own summand."""

import torch


def tensor_parallel_mlp(x, w1, b1, w2, b2):
    return torch.relu(x @ w1 + b1) @ w2 + b2
