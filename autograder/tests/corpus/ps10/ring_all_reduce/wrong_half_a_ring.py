"""0 points: stops after the first half: one piece is right."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    n, me = dist.get_world_size(), dist.get_rank()
    after, before = (me + 1) % n, (me - 1) % n
    pieces = [piece.clone() for piece in x.tensor_split(n)]
    for s in range(n - 1):
        inbox = torch.empty_like(pieces[(me - s - 1) % n])
        sending = dist.isend(pieces[(me - s) % n], after)
        dist.recv(inbox, before)
        sending.wait()
        pieces[(me - s - 1) % n] += inbox
    return torch.cat(pieces)
