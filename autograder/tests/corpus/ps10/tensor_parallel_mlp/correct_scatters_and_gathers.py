"""15 points: the two halves of an all-reduce: each rank sums a piece, and all pieces are gathered."""

import torch
import torch.distributed as dist


def tensor_parallel_mlp(x, w1, b1, w2, b2):
    n = dist.get_world_size()
    summand = torch.clamp(torch.addmm(b1, x, w1), min=0).mm(w2)
    size = -(-summand.numel() // n)
    filled = torch.nn.functional.pad(summand.flatten(), (0, n * size - summand.numel()))
    piece = filled.new_empty(size)
    dist.reduce_scatter_single(piece, filled)
    dist.all_gather_single(filled, piece)
    return filled[: summand.numel()].view_as(summand) + b2
