"""How fast bytes move: inside the device by stride, and between host and device."""

import torch
from numba import cuda

from .kernels import BLOCK, copy_strided
from .registry import experiment
from .timing import Case

NUMBERS = 1 << 28  # 1 GiB of float32: far above any L2


@experiment(question="What does a stride cost?", chapter="05-memory", x="stride in numbers of 4 bytes", cpu=True, uses=(copy_strided,))
def copy_bandwidth(where):
    """The numbers that are asked for: a stride makes a sector of 32 bytes deliver fewer of them."""
    size = NUMBERS if where == "cuda" else 1 << 24
    x, out = torch.rand(size, device=where), torch.empty(size, device=where)
    if where == "cuda":
        view_x, view_out = cuda.as_cuda_array(x), cuda.as_cuda_array(out)
        yield Case("torch copy", 1, lambda: out.copy_(x), "cuda", bytes=8 * size, roof="memory")
    for stride in (1, 2, 4, 8, 16, 32):
        count = size // stride
        if where == "cuda":
            launch = copy_strided[-(-count // BLOCK), BLOCK]
            call = lambda launch=launch, stride=stride: launch(view_x, view_out, stride)  # noqa: E731
            yield Case("copy kernel", stride, call, "cuda", bytes=8 * count, roof="memory")
        else:
            a, b = x[::stride], out[::stride]
            yield Case("cpu: copy", stride, lambda a=a, b=b: b.copy_(a), bytes=8 * count)


@experiment(question="How wide is the door between host and device?", chapter="05-memory", x="bytes")
def host_device_transfer(where):
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28):
        there = torch.empty(size, dtype=torch.uint8, device=where)
        for kind in ("pageable", "pinned"):
            here = torch.empty(size, dtype=torch.uint8, pin_memory=kind == "pinned" and where == "cuda")
            here.fill_(1)
            to, back = (lambda a=there, b=here: a.copy_(b)), (lambda a=there, b=here: b.copy_(a))
            yield Case(f"{kind}, to the device", size, to, bytes=size, roof="pcie")
            yield Case(f"{kind}, to the host", size, back, bytes=size, roof="pcie")
