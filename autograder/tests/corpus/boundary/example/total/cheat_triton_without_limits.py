"""0 points: a recorded launch of Triton's that asks for a megabyte of shared memory, past the recorder's own limit."""

import triton
import triton.language as tl

from warplab.crossing import driver


@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + i, mask=start + i < n, other=0.0)
    tl.store(out, tl.sum(total, 0))


def total(device, x, out):
    driver.checked_plan = lambda plan, *_: (*plan[:2], 1 << 20)
    sums[(1,)](x, out, x.shape[0], BLOCK=512)
