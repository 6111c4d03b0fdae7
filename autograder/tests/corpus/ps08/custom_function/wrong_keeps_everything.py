"""16 points: plain operations: right, and autograd keeps every array on the way."""

import math

import torch


def custom_function(x, bias):
    z = x + bias
    return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
