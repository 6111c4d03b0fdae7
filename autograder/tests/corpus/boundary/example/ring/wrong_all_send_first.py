"""0 points: everybody sends first, and a send waits for its receiver."""

import torch
import torch.distributed as dist


def ring(x):
    n, me = dist.get_world_size(), dist.get_rank()
    got = torch.empty_like(x)
    dist.send(x, (me + 1) % n)
    dist.recv(got, (me - 1) % n)
    return x + got
