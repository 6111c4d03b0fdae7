"""0 points: negative ranks and tags, foreign types, numbers of messages that do not exist."""

import torch.distributed as dist


def ring(x):
    a, send = x.numpy(), dist.group.WORLD._call
    posts = [
        {"op": "send", "peer": -1, "tag": 0, "array": a},
        {"op": "send", "peer": True, "tag": 0, "array": a},
        {"op": "send", "peer": 1, "tag": -5, "array": a},
        {"op": "send", "peer": 1, "tag": 0, "array": "no array"},
        {"op": "send", "peer": 1, "tag": 0, "array": a.reshape(1, -1)},
        {"op": "recv", "peer": 2**70, "tag": 0},
        {"op": ["all_reduce"], "reduce": {}, "array": a},
        {"op": "broadcast", "root": -1, "array": a},
    ]
    for message in ({"posts": 7}, {"posts": [7]}, {"posts": [], "wait": -1}, {"posts": [], "test": 10**9}, *({"posts": [post]} for post in posts)):
        send(message)
    return x
