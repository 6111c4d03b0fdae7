"""0 points: rank 1 ends its own process."""

import os

import torch
import torch.distributed as dist


def ring(x):
    if dist.get_rank() == 1:
        os._exit(0)
    got = torch.empty_like(x)
    dist.recv(got, 1)
    return x + got
