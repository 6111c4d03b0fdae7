"""14 points: one program of 32 warps takes all rows, one after the other."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, rows, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(rows):
        score = tl.load(x + row * x_stride + i, mask=i < columns, other=-float("inf"))
        largest = tl.max(score, axis=0)
        largest = tl.where(largest == -float("inf"), 0.0, largest)
        power = tl.exp(score - largest)
        total = tl.sum(power, axis=0)
        total = tl.where(total == 0.0, 1.0, total)
        tl.store(out + row * out_stride + i, power / total, mask=i < columns)


def fused_softmax(x, columns, out):
    width = triton.next_power_of_2(columns)
    softmax_kernel[(1,)](x, out, x.shape[0], columns, x.stride(0), out.stride(0), BLOCK=width, num_warps=32)
