"""6 points: right, but every rank sends its whole array to all others."""

import torch
import torch.distributed as dist


def ring(x):
    others = [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]
    sending = [dist.isend(x, rank) for rank in others]
    total, inbox = x.clone(), torch.empty_like(x)
    for rank in others:
        dist.recv(inbox, rank)
        total += inbox
    for work in sending:
        work.wait()
    return total
