"""10 points: a fixed number of programs, each of which takes every 32nd block."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def vector_add(x, y, out):
    add_kernel[(32,)](x, y, out, x.shape[0], BLOCK=512)
