"""8 points: every rank gets all summands and adds them up itself: twice an all-reduce's bytes on four ranks."""

import torch
import torch.distributed as dist


def tensor_parallel_mlp(x, w1, b1, w2, b2):
    part = torch.relu(x @ w1 + b1) @ w2
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part)
    return sum(parts) + b2
