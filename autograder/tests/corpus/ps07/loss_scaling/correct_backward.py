"""15 points: backward instead of autograd.grad, and the quotient in float64."""

import torch


def loss_of(w1, w2, x, y, share):
    guess = torch.tanh(x @ w1) @ w2
    return share * ((guess.float() - y) ** 2).mean()


def loss_scaling(w1, w2, x, y, share, scale):
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    finite = False
    while not finite:
        leaves = [torch.tensor(w, requires_grad=True) for w in (w1, w2)]
        (scale * loss_of(*leaves, x, y, share)).backward()
        finite = all(torch.isfinite(leaf.grad).all() for leaf in leaves)
        if not finite:
            scale = scale / 2
    one, two = ((leaf.grad.double() / scale).float().numpy() for leaf in leaves)
    return one, two, scale
