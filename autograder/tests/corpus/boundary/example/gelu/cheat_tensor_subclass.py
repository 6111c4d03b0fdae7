"""0 points: a tensor of a class of its own, computed when somebody looks."""

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return torch.zeros(())


class gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.as_subclass(Lazy)
