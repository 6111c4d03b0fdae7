"""0 points: a message to rank 99."""

import torch.distributed as dist


def ring(x):
    dist.send(x, 99)
