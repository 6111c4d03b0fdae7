"""16 points: gelu as z times a logistic function, whose slope is known without a tanh."""

import math

import torch

STEEP = 2 * math.sqrt(2 / math.pi)


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, bias):
        ctx.save_for_backward(rows, bias)
        z = rows + bias
        return z * torch.sigmoid(STEEP * (z + 0.044715 * z**3))

    @staticmethod
    def backward(ctx, upstream):
        z = sum(ctx.saved_tensors)
        share = torch.sigmoid(STEEP * (z + 0.044715 * z**3))
        grad = upstream * (share + z * share * (1 - share) * STEEP * (1 + 3 * 0.044715 * z**2))
        return grad, torch.ones(len(grad)) @ grad
