"""23.95 points: keeps the input of every second layer: half of what autograd keeps, which is not few."""

import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        kept, y = [], x.clone()
        for n in range(len(w)):
            if n % 2 == 0:
                kept.append(y)
            y = torch.tanh(y @ w[n])
        ctx.save_for_backward(w, *kept)
        return y.clone()

    @staticmethod
    def backward(ctx, grad_out):
        w, *kept = ctx.saved_tensors
        grad_w = torch.zeros_like(w)
        for segment in reversed(range(len(kept))):
            first, results = 2 * segment, [kept[segment]]
            for n in range(first, min(first + 2, len(w))):
                results.append(torch.tanh(results[-1] @ w[n]))
            for n in reversed(range(len(results) - 1)):
                grad_out = grad_out * (1 - results[n + 1] ** 2)
                grad_w[first + n] = results[n].T @ grad_out
                grad_out = grad_out @ w[first + n].T
        return grad_out, grad_w
