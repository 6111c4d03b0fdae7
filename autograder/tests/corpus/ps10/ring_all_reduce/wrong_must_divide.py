"""14 points: asks for a length that divides."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    n, me = dist.get_world_size(), dist.get_rank()
    after, before = (me + 1) % n, (me - 1) % n
    pieces = [piece.clone() for piece in x.view(n, -1)]
    for s in range(n - 1):
        inbox = torch.empty_like(pieces[(me - s - 1) % n])
        sending = dist.isend(pieces[(me - s) % n], after)
        dist.recv(inbox, before)
        sending.wait()
        pieces[(me - s - 1) % n] += inbox
    for s in range(n - 1):
        sending = dist.isend(pieces[(me + 1 - s) % n], after)
        dist.recv(pieces[(me - s) % n], before)
        sending.wait()
    return torch.cat(pieces)
