"""0 points: runs the layers again, but autograd is off in backward."""

import torch


def plain(x, w):
    for weights in w:
        x = torch.tanh(x @ weights)
    return x


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return plain(x, w).clone()

    @staticmethod
    def backward(ctx, grad_out):
        x, w = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
        return torch.autograd.grad(plain(x, w), (x, w), grad_out, allow_unused=True)


def checkpointed(x, w):
    return Again.apply(x, w)
