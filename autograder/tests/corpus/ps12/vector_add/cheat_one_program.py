"""6 points: one program goes through everything."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def vector_add(x, y, out):
    add_kernel[(1,)](x, y, out, x.shape[0], BLOCK=4096, num_warps=32)
