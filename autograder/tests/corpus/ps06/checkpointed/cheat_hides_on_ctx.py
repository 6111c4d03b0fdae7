"""0 points: keeps every result in an attribute of ctx: each array that lives on is counted, whoever holds it."""

import torch


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        with torch.enable_grad():
            ctx.inputs = x.detach().requires_grad_(), w.detach().requires_grad_()
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                y = ctx.inputs[0] * 1
                for weights in ctx.inputs[1]:
                    y = torch.tanh(y @ weights)
            ctx.y = y
        return y.detach()

    @staticmethod
    def backward(ctx, grad_out):
        grads = torch.autograd.grad(ctx.y, ctx.inputs, grad_out, allow_unused=True)
        return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(grads, ctx.inputs, strict=True))


def checkpointed(x, w):
    return Hidden.apply(x, w)
