"""0 points: keeps every result in arrays of NumPy's: they are counted like tensors."""

import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.kept = []
        for weights in w:
            ctx.kept.append(x.numpy().copy())
            x = torch.tanh(x @ weights)
        ctx.kept.append(x.numpy().copy())
        return x.clone()

    @staticmethod
    def backward(ctx, grad_out):
        x, w = ctx.saved_tensors
        grads = torch.zeros_like(w)
        for n in reversed(range(len(w))):
            result, given = torch.from_numpy(ctx.kept[n + 1]), torch.from_numpy(ctx.kept[n])
            inner = grad_out * (1 - result**2)
            grads[n] = given.T @ inner
            grad_out = inner @ w[n].T
        return grad_out, grads
