"""0 points: plain autograd: right, and everything is kept, as by the `plain` that is given."""

import torch


def checkpointed(x, w):
    x = x * 1
    for weights in w:
        x = torch.tanh(x @ weights)
    return x
