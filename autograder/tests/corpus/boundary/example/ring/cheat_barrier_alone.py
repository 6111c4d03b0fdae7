"""0 points: one rank waits at a barrier that the others have passed by."""

import torch.distributed as dist


def ring(x):
    if dist.get_rank() == 0:
        dist.barrier()
    return x
