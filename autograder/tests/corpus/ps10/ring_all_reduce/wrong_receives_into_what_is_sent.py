"""0 points: one buffer goes round, and each round receives into it while it is still being sent."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    n, me = dist.get_world_size(), dist.get_rank()
    total, passed = x.clone(), x.clone()
    for _ in range(n - 1):
        sending = dist.isend(passed, (me + 1) % n)
        dist.recv(passed, (me - 1) % n)
        sending.wait()
        total += passed
    return total
