"""0 points: a function, right and computed in NumPy, from which nothing leads back."""

import math

import torch


def gelu(x):
    return torch.tensor([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.flatten().tolist()]).reshape(x.shape)
