"""6 points: sends all micro-batches at once: nobody works at the same time."""

import torch
import torch.distributed as dist


def pipeline(x, w):
    me, n = dist.get_rank(), dist.get_world_size()
    micro = torch.tensor([len(x)])
    if me:
        dist.recv(micro, me - 1)
        x = x.new_empty((int(micro), *x.shape[1:]))
        dist.recv(x, me - 1)
    out = torch.tanh(x @ w)
    if me < n - 1:
        dist.send(micro, me + 1)
        dist.send(out, me + 1)
    ticks = [me * int(micro) + i for i in range(int(micro))]
    return out if me == n - 1 else torch.zeros(0), ticks
