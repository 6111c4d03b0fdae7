"""9 points: right, but rank 0 collects and sends out the gradient of every layer for itself."""

import torch
import torch.distributed as dist


def data_parallel(w, x, y, steps, lr):
    n, me = dist.get_world_size(), dist.get_rank()
    rows = torch.tensor([float(len(y))], dtype=torch.float64)
    dist.all_reduce(rows)
    sizes = [len(layer) for layer in w]
    weights = torch.cat(w)
    for _ in range(steps):
        gradient = 2 * x.T @ (x @ weights - y) / rows
        parts = []
        for part in gradient.split(sizes):
            part = part.contiguous()
            if me == 0:
                inbox = torch.empty_like(part)
                for rank in range(1, n):
                    dist.recv(inbox, rank)
                    part += inbox
            else:
                dist.send(part, 0)
            dist.broadcast(part, 0)
            parts.append(part)
        weights = weights - lr * torch.cat(parts)
    return weights
