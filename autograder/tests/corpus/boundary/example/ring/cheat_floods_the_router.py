"""0 points: messages without end."""

import torch
import torch.distributed as dist


def ring(x):
    n, me = dist.get_world_size(), dist.get_rank()
    while True:
        sending = dist.isend(torch.zeros(0), (me + 1) % n)
        dist.recv(torch.zeros(0), (me - 1) % n)
        sending.wait()
