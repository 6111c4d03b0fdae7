"""0 points: a Function that hands everything through, behind torch's own GELU in the function that is given."""

import torch


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, bias):
        return y.clone()

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out, grad_out.sum(0)


def custom_function(x, bias):
    return BiasGelu.apply(torch.nn.functional.gelu(x + bias, approximate="tanh"), bias)
