"""15 points: every rank waits for all micro-batches before it begins; the messages are the same."""

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
    if not first:
        x = x.new_empty((int(micro), *x.shape[1:]))
        for i in range(int(micro)):
            dist.recv(x[i], me - 1)
    y = torch.tanh(x @ w)
    if not last:
        for part in y:
            dist.send(part.contiguous(), me + 1)
    return (y if last else torch.zeros(0)), [me + i for i in range(int(micro))]
