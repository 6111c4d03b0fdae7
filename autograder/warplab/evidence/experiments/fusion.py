"""Fused against unfused: the same arithmetic in one kernel, and in several that hand
each other whole arrays.
"""

import torch

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment

fused_attention = torch.nn.functional.scaled_dot_product_attention


def _softmax(x):
    """Softmax of the rows in four separate steps."""
    shifted = x - x.amax(-1, keepdim=True)
    powers = shifted.exp()
    return powers / powers.sum(-1, keepdim=True)


def _attention(q, k, v):
    """Attention that stores its N x N matrix."""
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


@experiment(question="What does fusing a softmax save?", chapter="05-memory", x="columns", cpu=True)
def softmax(where):
    for columns in (256, 1024, 4096, 16384) if where == "cuda" else (256, 1024):
        rows = (1 << 27 if where == "cuda" else 1 << 20) // columns
        x = torch.randn(rows, columns, device=where)
        clock, roof = ("cuda", "memory") if where == "cuda" else ("host", "")
        what = {
            "bytes": 8 * x.numel(),
            "roof": roof,
        }  # each number in and out once: what the fused kernel needs
        yield Workload(f"{where}: four steps", columns, lambda x=x: _softmax(x), clock, **what)
        yield Workload(f"{where}: one kernel", columns, lambda x=x: torch.softmax(x, -1), clock, **what)


@experiment(
    question="What does attention without its matrix save?", chapter="05-memory", x="tokens", cpu=True
)
def attention(where):
    heads, width = (32, 64) if where == "cuda" else (4, 64)
    kind = torch.float16 if where == "cuda" else torch.float32
    for tokens in (256, 1024, 4096, 8192) if where == "cuda" else (128, 512):
        q, k, v = torch.randn(3, 1, heads, tokens, width, device=where, dtype=kind)
        what = {"flops": 4 * heads * tokens**2 * width, "roof": "fp16" if where == "cuda" else ""}
        clock = "cuda" if where == "cuda" else "host"
        yield Workload(f"{where}: matrix stored", tokens, lambda a=(q, k, v): _attention(*a), clock, **what)
        yield Workload(f"{where}: fused", tokens, lambda a=(q, k, v): fused_attention(*a), clock, **what)
