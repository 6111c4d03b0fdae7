"""18 points: a block of two rows, reduced along its second axis."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, rows, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    row = 2 * tl.program_id(0) + tl.arange(0, 2)[:, None]
    i = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (i < columns)
    score = tl.load(x + row * x_stride + i, mask=inside, other=-float("inf"))
    largest = tl.max(score, axis=1, keep_dims=True)
    power = tl.exp(score - tl.where(largest == -float("inf"), 0.0, largest))
    total = tl.sum(power, axis=1, keep_dims=True)
    tl.store(out + row * out_stride + i, power / tl.where(total == 0.0, 1.0, total), mask=inside)


def fused_softmax(x, columns, out):
    width, programs = triton.next_power_of_2(columns), triton.cdiv(x.shape[0], 2)
    softmax_kernel[(programs,)](x, out, x.shape[0], columns, x.stride(0), out.stride(0), BLOCK=width)
