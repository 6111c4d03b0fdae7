"""0 points: relu at the end."""

import torch
import torch.distributed as dist


def tensor_parallel_mlp(x, w1, b1, w2, b2):
    part = (x @ w1 + b1) @ w2
    dist.all_reduce(part)
    return torch.relu(part) + b2
