"""0 points: torch's own GELU, and torch's own gradient of it."""

import torch


def custom_function(x, bias):
    return torch.nn.functional.gelu(x + bias, approximate="tanh")
