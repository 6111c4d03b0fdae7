"""Measured speeds under the roof: a chain of multiply-adds of growing length, and the
course's own kernels.
"""

import functools

import torch
from numba import cuda

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import BLOCK, chain, reduce_shuffle
from warplab.evidence.experiments.matmul import launchers

INTENSITY = "FLOP for each byte that must travel"


@experiment(question="How close to the roof does a kernel get?", chapter="05-memory", x=INTENSITY)
def rooflines(where):
    """The bytes are the fewest possible: each input in once, each output out once."""
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    x, out, one = (
        torch.rand(1 << 28, device=where),
        torch.empty(1 << 28, device=where),
        torch.zeros(1, device=where),
    )
    views, total = [cuda.as_cuda_array(t) for t in (x, out)], cuda.as_cuda_array(one)
    on_cuda = functools.partial(Workload, clock="cuda", roof="fp32")
    for length in (1, 4, 16, 64, 256, 1024):
        launch = chain(length)[-(-x.numel() // BLOCK), BLOCK]
        yield on_cuda(
            "multiply-adds in a chain",
            length / 4,
            lambda launch=launch: launch(*views),
            bytes=8 * x.numel(),
            flops=2 * length * x.numel(),
        )
    launch = reduce_shuffle[2048, BLOCK]
    yield on_cuda(
        "reduce_shuffle",
        1 / 4,
        lambda launch=launch: launch(views[0], total),
        bytes=4 * x.numel(),
        flops=x.numel(),
    )
    for n in (512, 4096):
        a, b, c = torch.randn(3, n, n, device=where)
        square = [cuda.as_cuda_array(t) for t in (a, b, c)]
        for name, launch in launchers(n).items():
            yield on_cuda(name, n / 6, lambda launch=launch, v=square: launch(*v), flops=2 * n**3)
        yield on_cuda("torch fp32", n / 6, lambda a=a, b=b, c=c: torch.mm(a, b, out=c), flops=2 * n**3)
