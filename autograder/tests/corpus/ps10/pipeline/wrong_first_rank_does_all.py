"""0 points: waits for weights that nobody sends."""

import torch
import torch.distributed as dist


def pipeline(x, w):
    if dist.get_rank():
        return torch.zeros(0), []
    for k in range(1, dist.get_world_size()):
        other = torch.empty_like(w)
        dist.recv(other, k)
        w = w @ other
    return torch.tanh(x @ w), list(range(len(x)))
