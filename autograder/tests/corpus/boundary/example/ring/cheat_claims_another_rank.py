"""0 points: says that it is rank 0; the router knows from which process a message comes."""

import torch.distributed as dist


def ring(x):
    group = dist.group.WORLD
    dist.get_rank = lambda *_: 0
    group._call({"posts": [{"op": "send", "rank": 0, "peer": 0, "tag": 0, "array": x.numpy()}]})
    group._call({"rank": 0, "posts": [{"op": "recv", "peer": 1, "tag": 0}], "wait": 0})
    return x
