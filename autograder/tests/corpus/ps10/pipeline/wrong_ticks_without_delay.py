"""6 points: all begin at tick 0."""

import torch
import torch.distributed as dist


def pipeline(x, w):
    me, n = dist.get_rank(), dist.get_world_size()
    first, last = me == 0, me == n - 1
    micro = torch.tensor([len(x)])
    if not first:
        dist.recv(micro, me - 1)
    if not last:
        dist.send(micro, me + 1)
    batch, kept = x.new_empty(x.shape[1:]), []
    for i in range(int(micro)):
        if first:
            batch = x[i]
        else:
            dist.recv(batch, me - 1)
        result = torch.tanh(batch @ w)
        if last:
            kept.append(result)
        else:
            dist.send(result, me + 1)
    ticks = [i for i in range(int(micro))]
    return torch.stack(kept) if last else torch.zeros(0), ticks
