"""0 points: the function that is given, whose every result autograd keeps, in the place of a Function."""

import torch


def Again(x, w):
    for weights in w:
        x = torch.tanh(x @ weights)
    return x
