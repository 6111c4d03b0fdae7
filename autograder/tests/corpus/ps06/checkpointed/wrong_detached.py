"""0 points: computes under no_grad and returns that."""

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
        with torch.enable_grad():
            y = plain(x, w)
        grad_x, grad_w = torch.autograd.grad(y, (x, w), grad_out, allow_unused=True)
        return grad_x, torch.zeros_like(w) if grad_w is None else grad_w


def checkpointed(x, w):
    with torch.no_grad():
        return plain(x, w)
