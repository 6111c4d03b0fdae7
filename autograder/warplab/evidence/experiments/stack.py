"""What streams, graphs and one kernel instead of several save."""

import math

import torch
from numba import cuda, float32

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import BLOCK

COPIED = 1 << 26  # bytes that travel each way in stream_overlap
HALF, ROOT_HALF = float32(0.5), float32(math.sqrt(0.5))


@cuda.jit
def bias_gelu(x, b, out):
    """out = GELU(x + b) for the rows of x; a thread keeps its column and walks down."""
    col = cuda.grid(1)
    if col < x.shape[1]:
        for row in range(cuda.blockIdx.y, x.shape[0], cuda.gridDim.y):
            v = x[row, col] + b[col]
            out[row, col] = HALF * v * (float32(1) + math.erf(v * ROOT_HALF))


def _written_out(x, b):
    """The same in PyTorch as the formula is written: six operators, each over the whole array."""
    v = x + b
    return 0.5 * v * (1 + torch.erf(v * 0.5**0.5))


def _pipeline(here, there, back, streams, rounds):
    """Send, work on and fetch each piece, the pieces dealt out to ``streams`` in turn; wait for all."""
    for i in range(len(here)):
        with torch.cuda.stream(streams[i % len(streams)]):
            there[i].copy_(here[i], non_blocking=True)
            for _ in range(rounds):
                there[i].mul_(1.0001)
            back[i].copy_(there[i], non_blocking=True)
    torch.cuda.synchronize()


@experiment(question="What does copying while computing save?", chapter="08-stack", x="pieces")
def stream_overlap(where):
    for pieces in (1, 2, 4, 8, 16):
        size = COPIED // 4 // pieces
        here, back = (list(torch.ones(pieces, size, pin_memory=True)) for _ in range(2))
        there = list(torch.empty(pieces, size, device=where))
        for name, count in (("one stream", 1), ("a stream a piece", pieces)):
            streams = [torch.cuda.Stream() for _ in range(count)]
            yield Workload(
                name,
                pieces,
                lambda a=(here, there, back, streams): _pipeline(*a, rounds=32),
                bytes=2 * COPIED,
            )


def _small_steps(x, steps):
    for _ in range(steps):
        x.mul_(1.0001)


@experiment(question="What does replaying a graph save?", chapter="08-stack", x="small kernels in a row")
def graph_replay(where):
    x = torch.ones(1024, device=where)
    for steps in (1, 10, 100, 1000):
        _small_steps(x, 3)  # PyTorch wants its kernels loaded before it captures
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            _small_steps(x, steps)
        yield Workload("launched one by one", steps, lambda n=steps: _small_steps(x, n))
        yield Workload("one graph", steps, graph.replay)


@experiment(question="What does fusing bias and GELU save?", chapter="08-stack", x="numbers")
def bias_and_gelu(where):
    width = 1024
    b = torch.randn(width, device=where)
    for rows in (1 << 10, 1 << 14, 1 << 17):
        x = torch.randn(rows, width, device=where)
        what = {
            "bytes": 8 * x.numel(),
            "roof": "memory" if rows > 1 << 14 else "",
        }  # each number in and out once; smaller ones stay in L2
        yield Workload(
            "the formula, six operators", x.numel(), lambda x=x: _written_out(x, b), "cuda", **what
        )
        yield Workload(
            "bias, then F.gelu", x.numel(), lambda x=x: torch.nn.functional.gelu(x + b), "cuda", **what
        )
        views = [cuda.as_cuda_array(t) for t in (x, b, torch.empty_like(x))]
        launch = bias_gelu[(width // BLOCK, min(rows, 4096)), BLOCK]
        yield Workload("one kernel", x.numel(), lambda launch=launch, v=views: launch(*v), "cuda", **what)
