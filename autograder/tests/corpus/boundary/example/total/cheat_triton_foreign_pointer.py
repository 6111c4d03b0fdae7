"""0 points: what a launch of Triton's is told to read is no array of the judge's: its recording names another."""

import triton
import triton.language as tl


@triton.jit
def copied(x, out):
    tl.store(out, tl.load(x))


def total(device, x, out):
    copied[(1,)](x, out)
    device.steps[-1][-1][0] = "expected"
