"""0 points: keeps every result in a dict of the module: backward runs in another process, which has none."""

import torch

kept = {}


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        results = [x.clone()]
        for weights in w:
            results.append(torch.tanh(results[-1] @ weights))
        ctx.save_for_backward(w)
        kept["results"] = results
        return results[-1].clone()

    @staticmethod
    def backward(ctx, grad_out):
        (w,), results = ctx.saved_tensors, kept["results"]
        grad_w = torch.zeros_like(w)
        for n in reversed(range(len(w))):
            grad_out = grad_out * (1 - results[n + 1] ** 2)
            grad_w[n] = results[n].T @ grad_out
            grad_out = grad_out @ w[n].T
        return grad_out, grad_w
