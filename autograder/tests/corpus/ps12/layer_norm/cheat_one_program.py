"""7 points: one program of 32 warps takes all rows, one after the other."""

import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, gamma, beta, eps, y, mean, rstd, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < columns
    g, b = tl.load(gamma + i, mask=inside), tl.load(beta + i, mask=inside)
    for row in range(rows):
        value = tl.load(x + row * columns + i, mask=inside, other=0.0)
        middle = tl.sum(value, axis=0) / columns
        apart = tl.where(inside, value - middle, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + eps)
        tl.store(y + row * columns + i, apart * scale * g + b, mask=inside)
        tl.store(mean + row, middle)
        tl.store(rstd + row, scale)


def layer_norm(x, gamma, beta, eps, y, mean, rstd):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    norm_kernel[(1,)](x, gamma, beta, eps, y, mean, rstd, rows, columns, BLOCK=width, num_warps=32)
