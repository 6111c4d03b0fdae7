"""How fast bytes move inside the device, in order, by stride and at random; how long
one load takes; and the way to the host.
"""

import numpy as np
import torch
from numba import cuda, njit

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import BLOCK, chase, copy_strided, follow, gather

NUMBERS = 1 << 28  # 1 GiB of float32: far above any L2


@experiment(
    question="What does a stride cost?", chapter="05-memory", x="stride in numbers of 4 bytes", cpu=True
)
def copy_bandwidth(where):
    """The numbers that are asked for: a stride makes a sector of 32 bytes deliver fewer of them."""
    size = NUMBERS if where == "cuda" else 1 << 24
    x, out = torch.rand(size, device=where), torch.empty(size, device=where)
    if where == "cuda":
        view_x, view_out = cuda.as_cuda_array(x), cuda.as_cuda_array(out)
        yield Workload("torch copy", 1, lambda: out.copy_(x), "cuda", bytes=8 * size, roof="memory")
    for stride in (1, 2, 4, 8, 16, 32):
        count = size // stride
        if where == "cuda":
            launch = copy_strided[-(-count // BLOCK), BLOCK]
            call = lambda launch=launch, stride=stride: launch(view_x, view_out, stride)  # noqa: E731
            yield Workload("copy kernel", stride, call, "cuda", bytes=8 * count, roof="memory")
        else:
            a, b = x[::stride], out[::stride]
            yield Workload("cpu: copy", stride, lambda a=a, b=b: b.copy_(a), bytes=8 * count)


@experiment(
    question="What does reading at random cost?", chapter="05-memory", x="bytes of the table", cpu=True
)
def random_reads(where):
    """Every number of a table once, in the order of an index of four bytes (on the CPU
    eight): as many bytes asked for either way.
    """
    for size in (1 << 20, 1 << 24, 1 << 28, 1 << 30) if where == "cuda" else (1 << 16, 1 << 20, 1 << 24):
        count = size // 4
        x, out = torch.rand(count, device=where), torch.empty(count, device=where)
        for name, index in (
            ("in order", torch.arange(count, device=where)),
            ("at random", torch.randperm(count, device=where)),
        ):
            if where == "cuda":
                launch, views = (
                    gather[-(-count // BLOCK), BLOCK],
                    [cuda.as_cuda_array(t) for t in (x, index.int(), out)],
                )
                roof = "memory" if size > 1 << 24 else ""  # a smaller table stays in L2 once it is there
                yield Workload(
                    name, size, lambda launch=launch, v=views: launch(*v), "cuda", bytes=12 * count, roof=roof
                )
            else:
                yield Workload(
                    f"cpu: {name}",
                    size,
                    lambda x=x, i=index, out=out: torch.index_select(x, 0, i, out=out),
                    bytes=16 * count,
                )


LINE = 16  # numbers of 8 bytes in 128, the longest line that a cache here has
STEPS = 1 << 14


def ring(lines):
    """A table with one random ring through the first number of every line: int64 [lines * LINE]."""
    order = torch.randperm(lines) * LINE
    table = torch.zeros(lines * LINE, dtype=torch.int64)
    table[order] = order.roll(-1)
    return table


@experiment(
    question="How long does a load take that waits for the one before?",
    chapter="05-memory",
    x="bytes of the table",
    cpu=True,
)
def latency(where):
    """One thread; the time of one load. The table is read once before each call, so
    what fits a cache lies in it.

    The indices are unsigned: a signed one may count from the end, and its sign would be
    looked at between any two loads.
    """
    step = njit(follow)
    for size in (1 << k for k in range(12, 31, 2)) if where == "cuda" else (1 << k for k in range(12, 27, 2)):
        table, at = ring(size // 8 // LINE).to(where), torch.zeros(1, dtype=torch.int64, device=where)
        if where == "cuda":
            launch, views = chase[1, 1], [cuda.as_cuda_array(t).view(np.uint64) for t in (table, at)]
            yield Workload(
                "one thread",
                size,
                lambda v=views, launch=launch: launch(*v, STEPS),
                "cuda",
                before=table.sum,
                per=STEPS,
            )
        else:
            arrays = [t.numpy().view(np.uint64) for t in (table, at)]
            yield Workload(
                "cpu: one thread", size, lambda a=arrays: step(*a, STEPS), before=table.sum, per=STEPS
            )


@experiment(question="How fast do bytes go between host and device?", chapter="05-memory", x="bytes")
def host_device_transfer(where):
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28):
        there = torch.empty(size, dtype=torch.uint8, device=where)
        for kind in ("pageable", "pinned"):
            here = torch.empty(size, dtype=torch.uint8, pin_memory=kind == "pinned" and where == "cuda")
            here.fill_(1)
            to, back = (lambda a=there, b=here: a.copy_(b)), (lambda a=there, b=here: b.copy_(a))
            yield Workload(f"{kind}, to the device", size, to, bytes=size, roof="pcie")
            yield Workload(f"{kind}, to the host", size, back, bytes=size, roof="pcie")
