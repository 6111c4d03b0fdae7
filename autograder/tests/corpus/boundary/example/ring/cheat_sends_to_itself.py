"""0 points: a message to itself, which would be counted by nobody."""

import torch.distributed as dist


def ring(x):
    sending = dist.isend(x, dist.get_rank())
    dist.recv(x, dist.get_rank())
    sending.wait()
    return x
