"""0 points: the approximation by tanh is off by more than rounding."""

import torch


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")
