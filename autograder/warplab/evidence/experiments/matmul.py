"""Square products by size: the course's kernels, and the library in four formats.
Chapter 7's are in precision.
"""

import torch
from numba import cuda

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.kernels import TILE, matmul_naive, matmul_register_tiled, matmul_tiled

FORMATS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


KERNELS = (matmul_naive, matmul_tiled, matmul_register_tiled)


def launchers(n):
    """{name: configured kernel} for a product of n x n matrices, n a multiple of 64."""
    shapes = [((-(-n // TILE),) * 2, (TILE, TILE))] * 2 + [((n // 64,) * 2, (16, 16))]
    return {kernel.py_func.__name__: kernel[shape] for kernel, shape in zip(KERNELS, shapes, strict=True)}


@experiment(question="How far is each product from the peak?", chapter="04-matmul", x="side", cpu=True)
def matmul_by_size(where):
    for n in (256, 512, 1024, 2048, 4096, 8192) if where == "cuda" else (64, 128, 256, 512, 1024):
        flops = 2 * n**3
        a, b = torch.randn(2, n, n, device=where)
        if where == "cpu":
            yield Workload("cpu: torch fp32", n, lambda a=a, b=b: a @ b, flops=flops)
            continue
        c = torch.empty(n, n, device=where)
        views = [cuda.as_cuda_array(t) for t in (a, b, c)]
        for name, launch in launchers(n).items():
            if n <= 4096:
                yield Workload(
                    f"course: {name}",
                    n,
                    lambda launch=launch, v=views: launch(*v),
                    "cuda",
                    flops=flops,
                    roof="fp32",
                )
        for name, kind in FORMATS.items():
            torch.backends.cuda.matmul.fp32_precision = "tf32" if name == "tf32" else "ieee"
            x, y, z = a.to(kind), b.to(kind), torch.empty(n, n, dtype=kind, device=where)
            yield Workload(
                f"torch {name}",
                n,
                lambda x=x, y=y, z=z: torch.mm(x, y, out=z),
                "cuda",
                flops=flops,
                roof=name,
            )
        torch.backends.cuda.matmul.fp32_precision = "ieee"
