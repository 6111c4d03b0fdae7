"""0 points: keeps autograd's own record of all layers on ctx, which no other process could read."""

import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        with torch.enable_grad():
            ctx.inputs = x.detach().requires_grad_(), w.detach().requires_grad_()
            y = ctx.inputs[0] * 1
            for weights in ctx.inputs[1]:
                y = torch.tanh(y @ weights)
            ctx.y = y
        return y.detach()

    @staticmethod
    def backward(ctx, grad_out):
        grads = torch.autograd.grad(ctx.y, ctx.inputs, grad_out, allow_unused=True)
        return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(grads, ctx.inputs, strict=True))
