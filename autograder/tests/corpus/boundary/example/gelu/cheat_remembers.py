"""0 points: keeps nothing, and remembers x all the same: backward runs in a process that has not seen it."""

import math

import torch

remembered = []


class gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        remembered.append(x)
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_out):
        x = remembered[-1]
        phi = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return grad_out * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * phi)
