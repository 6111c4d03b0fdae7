"""0 points: the approximation by tanh is off by more than rounding."""

import math

import torch


class gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.gelu(x, approximate="tanh")

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        phi = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return grad_out * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * phi)
