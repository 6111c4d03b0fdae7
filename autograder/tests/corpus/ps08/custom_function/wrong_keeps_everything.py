"""0 points: plain operations: right, but nobody has told autograd anything."""

import math

import torch


def BiasGelu(x, bias):
    z = x + bias
    return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
