"""25 points: forward and what it keeps apart, as torch has it now, and torch's own checkpoint on the way back."""

import torch
from torch.utils.checkpoint import checkpoint


def some(x, w):
    for weights in w:
        x = torch.tanh(x @ weights)
    return x


class Again(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return some(x, w)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.layers = len(inputs[1])
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_out):
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            y = x * 1
            for first in range(0, ctx.layers, 4):
                y = checkpoint(some, y, w[first : first + 4], use_reentrant=False)
            return torch.autograd.grad(y + 0 * w.sum(), (x, w), grad_out)
