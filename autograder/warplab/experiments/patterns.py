"""The same work in several ways: transposing and adding up."""

import torch
from numba import cuda

from .kernels import BLOCK, ROWS, TILE, divergent, reduce_atomic, reduce_shuffle, reduce_tree, transpose_naive, transpose_padded, transpose_tiled
from .registry import experiment
from .timing import Case

TRANSPOSES = (transpose_naive, transpose_tiled, transpose_padded)
REDUCTIONS = (reduce_atomic, reduce_tree, reduce_shuffle)


@experiment(question="What do coalescing and bank conflicts cost a transpose?", chapter="05-memory", x="side", cpu=True, uses=TRANSPOSES)
def transpose(where):
    for n in (1024, 4096, 16384) if where == "cuda" else (256, 1024, 2048):
        x = torch.rand(n, n, device=where)
        out = torch.empty(n, n, device=where)
        if where == "cuda":
            views = cuda.as_cuda_array(x), cuda.as_cuda_array(out)
            for kernel in TRANSPOSES:
                launch = kernel[(-(-n // TILE), -(-n // TILE)), (TILE, ROWS)]
                roof = "memory" if n > 4096 else ""  # smaller ones' writes stay in L2
                yield Case(kernel.py_func.__name__, n, lambda launch=launch, v=views: launch(*v), "cuda", bytes=8 * n * n, roof=roof)
        clock = "cuda" if where == "cuda" else "host"
        yield Case(f"{where}: torch copy of the transpose", n, lambda x=x, out=out: out.copy_(x.T), clock, bytes=8 * n * n)


@experiment(question="What do atomics cost a sum?", chapter="03-parallel", x="numbers", cpu=True, uses=REDUCTIONS)
def reduction(where):
    for n in (1 << 16, 1 << 20, 1 << 24, 1 << 28) if where == "cuda" else (1 << 16, 1 << 20, 1 << 22):
        x = torch.rand(n, device=where)
        clock = "cuda" if where == "cuda" else "host"
        roof = "memory" if where == "cuda" and n >= 1 << 28 else ""
        yield Case(f"{where}: torch sum", n, lambda x=x: x.sum(), clock, bytes=4 * n, roof=roof)
        if where == "cuda":
            views = cuda.as_cuda_array(x), cuda.as_cuda_array(torch.zeros(1, device=where))
            for kernel in REDUCTIONS:
                if kernel is reduce_atomic and n > 1 << 24:
                    continue
                blocks = -(-n // BLOCK) if kernel is reduce_atomic else min(-(-n // BLOCK), 2048)
                launch = kernel[blocks, BLOCK]
                yield Case(kernel.py_func.__name__, n, lambda launch=launch, v=views: launch(*v), "cuda", bytes=4 * n, roof=roof)


@experiment(question="What does a warp pay for lanes that disagree?", chapter="02-cores", x="paths in a warp", uses=(divergent,))
def divergence(where):
    blocks, steps = 132 * 16, 1000
    out = cuda.as_cuda_array(torch.empty(blocks * BLOCK, device=where))
    launch = divergent[blocks, BLOCK]
    for paths in (1, 2, 4, 8, 16, 32):
        yield Case("the same arithmetic", paths, lambda p=paths: launch(out, p, steps), "cuda", flops=2 * steps * blocks * BLOCK, roof="fp32")
