"""13 points: keeps x + bias, an array of its own, where x and the bias would do."""

import torch


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        z = x + bias
        ctx.save_for_backward(z)
        return torch.nn.functional.gelu(z, approximate="tanh")

    @staticmethod
    def backward(ctx, grad_out):
        z = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = torch.nn.functional.gelu(z, approximate="tanh")
        (grad_x,) = torch.autograd.grad(y, z, grad_out)
        return grad_x, grad_x.sum(0)
