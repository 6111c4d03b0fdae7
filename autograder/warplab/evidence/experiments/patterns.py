"""The same work in several ways: transposing, adding up, in agreement or not, with few warps or many."""

import torch
from numba import cuda

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import (
    BLOCK,
    ROWS,
    TILE,
    copy_by_fours,
    copy_one_by_one,
    divergent,
    reduce_atomic,
    reduce_shuffle,
    reduce_tree,
    transpose_naive,
    transpose_padded,
    transpose_tiled,
)

TRANSPOSES = (transpose_naive, transpose_tiled, transpose_padded)
REDUCTIONS = (reduce_atomic, reduce_tree, reduce_shuffle)


@experiment(
    question="What do coalescing and bank conflicts cost a transpose?",
    chapter="05-memory",
    x="side",
    cpu=True,
)
def transpose(where):
    for n in (1024, 4096, 16384) if where == "cuda" else (256, 1024, 2048):
        x = torch.rand(n, n, device=where)
        out = torch.empty(n, n, device=where)
        if where == "cuda":
            views = cuda.as_cuda_array(x), cuda.as_cuda_array(out)
            for kernel in TRANSPOSES:
                launch = kernel[(-(-n // TILE), -(-n // TILE)), (TILE, ROWS)]
                roof = "memory" if n > 4096 else ""  # smaller ones' writes stay in L2
                yield Workload(
                    kernel.py_func.__name__,
                    n,
                    lambda launch=launch, v=views: launch(*v),
                    "cuda",
                    bytes=8 * n * n,
                    roof=roof,
                )
        clock = "cuda" if where == "cuda" else "host"
        yield Workload(
            f"{where}: torch copy of the transpose",
            n,
            lambda x=x, out=out: out.copy_(x.T),
            clock,
            bytes=8 * n * n,
        )


@experiment(question="What do atomics cost a sum?", chapter="03-parallel", x="numbers", cpu=True)
def reduction(where):
    for n in (1 << 16, 1 << 20, 1 << 24, 1 << 28) if where == "cuda" else (1 << 16, 1 << 20, 1 << 22):
        x = torch.rand(n, device=where)
        clock = "cuda" if where == "cuda" else "host"
        roof = "memory" if where == "cuda" and n >= 1 << 28 else ""
        yield Workload(f"{where}: torch sum", n, lambda x=x: x.sum(), clock, bytes=4 * n, roof=roof)
        if where == "cuda":
            views = cuda.as_cuda_array(x), cuda.as_cuda_array(torch.zeros(1, device=where))
            for kernel in REDUCTIONS:
                if kernel is reduce_atomic and n > 1 << 24:
                    continue
                blocks = -(-n // BLOCK) if kernel is reduce_atomic else min(-(-n // BLOCK), 2048)
                launch = kernel[blocks, BLOCK]
                yield Workload(
                    kernel.py_func.__name__,
                    n,
                    lambda launch=launch, v=views: launch(*v),
                    "cuda",
                    bytes=4 * n,
                    roof=roof,
                )


@experiment(question="What does a warp pay for lanes that disagree?", chapter="02-cores", x="paths in a warp")
def divergence(where):
    blocks, steps = 132 * 16, 1000
    out = cuda.as_cuda_array(torch.empty(blocks * BLOCK, device=where))
    launch = divergent[blocks, BLOCK]
    for paths in (1, 2, 4, 8, 16, 32):
        yield Workload(
            "the same arithmetic",
            paths,
            lambda p=paths: launch(out, p, steps),
            "cuda",
            flops=2 * steps * blocks * BLOCK,
            roof="fp32",
        )


@experiment(
    question="How many warps does an SM need to use the memory's bandwidth?",
    chapter="02-cores",
    x="warps on each SM",
)
def occupancy(where):
    """A copy of 1 GiB by a grid that gives every SM so many warps and no more; one load
    in flight for each thread, and four.
    """
    x, out = torch.rand(1 << 28, device=where), torch.empty(1 << 28, device=where)
    views = [cuda.as_cuda_array(t) for t in (x, out)]
    most = torch.cuda.get_device_properties(0).max_threads_per_multi_processor // 32
    for warps in (w for w in (1, 2, 4, 8, 16, 32, 48, 64) if w <= most):
        block = min(BLOCK, 32 * warps)
        grid = torch.cuda.get_device_properties(0).multi_processor_count * 32 * warps // block
        for name, kernel in ("a load at a time", copy_one_by_one), ("four loads at a time", copy_by_fours):
            launch = kernel[grid, block]
            yield Workload(
                name, warps, lambda launch=launch: launch(*views), "cuda", bytes=8 * x.numel(), roof="memory"
            )
