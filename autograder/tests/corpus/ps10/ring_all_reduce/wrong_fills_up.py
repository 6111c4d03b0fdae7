"""5 points: chapter 10's ring, with the array filled up to a length that divides: the zeros are sent, too."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    buffer = torch.nn.functional.pad(x, (0, -len(x) % n))
    parts = buffer.chunk(n)
    inbox = torch.empty_like(parts[0])
    for step in range(2 * (n - 1)):
        give, take = parts[(rank - step) % n], parts[(rank - step - 1) % n]
        sending = dist.isend(give, (rank + 1) % n)
        dist.recv(inbox, (rank - 1) % n)
        sending.wait()
        take.copy_(take + inbox if step < n - 1 else inbox)
    return buffer[: len(x)]
