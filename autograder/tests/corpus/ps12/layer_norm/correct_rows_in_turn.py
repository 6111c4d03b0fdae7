"""10 points: 32 programs take rows in turn, and read gamma and beta once."""

import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, gamma, beta, eps, y, mean, rstd, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < columns
    g, b = tl.load(gamma + i, mask=inside), tl.load(beta + i, mask=inside)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * columns + i, mask=inside, other=0.0)
        middle = tl.sum(value, axis=0) / columns
        apart = tl.where(inside, value - middle, 0.0)
        scale = tl.rsqrt(tl.sum(apart * apart, axis=0) / columns + eps)
        tl.store(y + row * columns + i, apart * scale * g + b, mask=inside)
        tl.store(mean + row, middle)
        tl.store(rstd + row, scale)


def layer_norm(x, gamma, beta, eps, y, mean, rstd):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    norm_kernel[(32,)](x, gamma, beta, eps, y, mean, rstd, rows, columns, BLOCK=width, num_warps=8)
