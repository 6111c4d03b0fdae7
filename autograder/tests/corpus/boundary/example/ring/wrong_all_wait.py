"""0 points: everybody receives first; the router says who waits for whom."""

import torch
import torch.distributed as dist


def ring(x):
    n, me = dist.get_world_size(), dist.get_rank()
    got = torch.empty_like(x)
    dist.recv(got, (me - 1) % n)
    dist.send(x, (me + 1) % n)
    return x + got
