"""0 points: right, but each rank takes more memory than its share; together they have what one process may take."""

import torch
import torch.distributed as dist

HELD = []


def ring(x):
    HELD.append(bytearray(1200 << 20))
    n, me = dist.get_world_size(), dist.get_rank()
    total, passing, inbox = x.clone(), x, torch.empty_like(x)
    for _ in range(n - 1):
        sending = dist.isend(passing, (me + 1) % n)
        dist.recv(inbox, (me - 1) % n)
        sending.wait()
        passing = inbox.clone()
        total += passing
    return total
