"""0 points: y is computed in NumPy, and nothing leads back from it."""

import math

import torch


def gelu(x):
    return torch.tensor([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.flatten().tolist()]).reshape(x.shape)
