"""0 points: a tensor of a class of its own, computed when somebody looks."""

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return torch.zeros(())


def gelu(x):
    return x.as_subclass(Lazy)
