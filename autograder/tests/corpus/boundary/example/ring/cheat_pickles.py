"""0 points: sends itself as a pickle; only tensors go between the ranks."""

import torch.distributed as dist


class Payload:
    def __reduce__(self):
        return print, ("unpickled",)


def ring(x):
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, Payload())
    return x
