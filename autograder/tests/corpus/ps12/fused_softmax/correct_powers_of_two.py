"""18 points: 2 to the power of scores times log2(e), with eight warps and one store of a quotient."""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_kernel(x, out, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    score = tl.load(x + row * x_stride + i, mask=i < columns, other=-float("inf"))
    largest = tl.max(score, axis=0)
    below = score - tl.where(largest > -float("inf"), largest, 0.0)
    power = tl.exp2(below * LOG2_E)
    total = tl.sum(power, axis=0)
    share = tl.where(total == 0.0, power, power / total)
    tl.store(out + row * out_stride + i, share, mask=i < columns)


def fused_softmax(x, columns, out):
    width = triton.next_power_of_2(columns)
    softmax_kernel[(x.shape[0],)](x, out, columns, x.stride(0), out.stride(0), BLOCK=width, num_warps=8)
