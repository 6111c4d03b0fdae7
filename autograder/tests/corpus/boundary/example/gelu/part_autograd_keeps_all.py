"""8 points: right, and several arrays are kept for the way back, one of them not by autograd."""

import math

import torch


class gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, torch.erf(x / math.sqrt(2)))
        ctx.square = x * x
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_out):
        x, erf = ctx.saved_tensors
        phi = torch.exp(-ctx.square / 2) / math.sqrt(2 * math.pi)
        return grad_out * (0.5 * (1 + erf) + x * phi)
