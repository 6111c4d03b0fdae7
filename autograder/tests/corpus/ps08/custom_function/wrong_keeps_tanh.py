"""13 points: keeps the sum and the tanh, two arrays of its own, where x and the bias would do."""

import math

import torch


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        z = x + bias
        t = torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))
        ctx.save_for_backward(z, t)
        return 0.5 * z * (1 + t)

    @staticmethod
    def backward(ctx, grad_out):
        z, t = ctx.saved_tensors
        slope = 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * z**2)
        grad_x = grad_out * slope
        return grad_x, grad_x.sum(0)
