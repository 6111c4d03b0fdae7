"""0 points: forgets the gradient that comes from above."""

import math

import torch


class BiasGelu(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x, bias)
        z = x + bias
        return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))

    @staticmethod
    def backward(ctx, grad_out):
        x, bias = ctx.saved_tensors
        z, c = x + bias, math.sqrt(2 / math.pi)
        t = torch.tanh(c * (z + 0.044715 * z**3))
        slope = 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * c * (1 + 3 * 0.044715 * z**2)
        grad_x = slope
        return grad_x, grad_x.sum(0)


def custom_function(x, bias):
    return BiasGelu.apply(x, bias)
