"""10 points: divides by the scale that it began with, not by the one that worked."""

import torch


def loss_of(w1, w2, x, y, share):
    guess = torch.tanh(x @ w1) @ w2
    return share * ((guess.float() - y) ** 2).mean()


def loss_scaling(w1, w2, x, y, share, scale):
    w1, w2, x, y = (torch.from_numpy(array) for array in (w1, w2, x, y))
    weights = w1.requires_grad_(), w2.requires_grad_()
    first = scale
    while True:
        grads = torch.autograd.grad(loss_of(w1, w2, x, y, share) * scale, weights)
        if all(grad.isfinite().all() for grad in grads):
            grad1, grad2 = (grad.float() / first for grad in grads)
            return grad1.numpy(), grad2.numpy(), scale
        scale /= 2
