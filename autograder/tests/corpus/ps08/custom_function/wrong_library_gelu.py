"""0 points: torch's own GELU, and torch's own gradient of it."""

import torch


def BiasGelu(x, bias):
    return torch.nn.functional.gelu(x + bias, approximate="tanh")
