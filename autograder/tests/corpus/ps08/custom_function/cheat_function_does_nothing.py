"""0 points: a Function that hands everything through, behind torch's own GELU and its own slope."""

import torch


class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out


def custom_function(x, bias):
    return Nothing.apply(torch.nn.functional.gelu(x + bias, approximate="tanh"))
