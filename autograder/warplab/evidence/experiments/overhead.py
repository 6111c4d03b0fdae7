"""What a launch costs, and from which size on the GPU pays for it."""

import torch
from numba import cuda

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import empty


@experiment(
    question="What does it cost to start a kernel that does nothing?", chapter="08-stack", x="launches"
)
def launch_overhead(where):
    launch = empty[1, 32]
    one = torch.zeros(1, device=where)
    yield Workload("numba: queued", 1, launch, "queue")
    yield Workload("numba: launched and waited for", 1, launch, "host")
    yield Workload("torch: queued", 1, lambda: one.add_(1), "queue")
    yield Workload("torch: launched and waited for", 1, lambda: one.add_(1), "host")
    yield Workload("waiting alone", 1, cuda.synchronize, "host")


def _mlp(width, where):
    """Two layers of ``width``, ReLU between."""
    return torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
    ).to(where)


@experiment(
    question="From which size on is the GPU faster?",
    chapter="02-cores",
    x="floating-point operations a call",
    cpu=True,
)
def crossover(where):
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    largest = 1 if where == "cuda" else 4
    for n in (2**k for k in range(8, 27, 3)):
        if n <= 2**26 // largest**2:
            x, y = torch.randn(2, n, device=where)
            yield Workload(f"{where}: addition", n, lambda x=x, y=y: x + y)
            yield Workload(f"{where}: sum", n, lambda x=x: x.sum())
    for n in (16, 64, 256, 1024, 4096):
        if n <= 4096 // largest:
            a, b = torch.randn(2, n, n, device=where)
            yield Workload(
                f"{where}: product",
                2 * n**3,
                lambda a=a, b=b: a @ b,
                flops=2 * n**3,
                roof="fp32" if where == "cuda" else "",
            )
    for width in (16, 64, 256, 1024, 4096):
        if width <= 4096 // largest:
            net, x = _mlp(width, where), torch.randn(64, width, device=where)
            yield Workload(
                f"{where}: small network, batch 64",
                4 * 64 * width**2,
                lambda net=net, x=x: net(x),
                flops=4 * 64 * width**2,
            )
