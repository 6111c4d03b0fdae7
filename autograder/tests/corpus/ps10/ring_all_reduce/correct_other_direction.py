"""15 points: the ring the other way round, send and receive posted together."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    n, me = dist.get_world_size(), dist.get_rank()
    pieces = [piece.clone() for piece in x.tensor_split(n)]

    def pass_back(give, inbox):
        sending = dist.P2POp(dist.isend, give, (me - 1) % n)
        receiving = dist.P2POp(dist.irecv, inbox, (me + 1) % n)
        for work in dist.batch_isend_irecv([receiving, sending]):
            work.wait()

    for s in range(n - 1):
        inbox = torch.empty_like(pieces[(me + s + 1) % n])
        pass_back(pieces[(me + s) % n], inbox)
        pieces[(me + s + 1) % n] += inbox
    for s in range(n - 1):
        pass_back(pieces[(me + s - 1) % n], pieces[(me + s) % n])
    return torch.cat(pieces)
