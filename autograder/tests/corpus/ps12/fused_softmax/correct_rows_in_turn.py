"""18 points: a fixed number of programs that take rows in turn, as Triton's own tutorial has it."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, rows, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        score = tl.load(x + row * x_stride + i, mask=i < columns, other=-float("inf"))
        largest = tl.max(score, axis=0)
        power = tl.exp(score - tl.where(largest == -float("inf"), 0.0, largest))
        total = tl.sum(power, axis=0)
        tl.store(out + row * out_stride + i, power / tl.where(total == 0.0, 1.0, total), mask=i < columns)


def fused_softmax(x, columns, out):
    width = triton.next_power_of_2(columns)
    softmax_kernel[(32,)](x, out, x.shape[0], columns, x.stride(0), out.stride(0), BLOCK=width)
