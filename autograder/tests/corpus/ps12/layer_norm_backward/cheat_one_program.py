"""8 points: one program takes all rows, and needs no second launch."""

import triton
import triton.language as tl


@triton.jit
def backward_kernel(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < columns
    g = tl.load(gamma + i, mask=inside, other=0.0)
    for_gamma = tl.zeros((BLOCK,), tl.float32)
    for_beta = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        scale = tl.load(rstd + row)
        h = (tl.load(x + row * columns + i, mask=inside, other=0.0) - tl.load(mean + row)) * scale
        d = tl.load(dy + row * columns + i, mask=inside, other=0.0)
        along, level = tl.sum(h * d * g, axis=0) / columns, tl.sum(d * g, axis=0) / columns
        tl.store(dx + row * columns + i, (d * g - h * along - level) * scale, mask=inside)
        for_gamma += d * h
        for_beta += d
    tl.store(dgamma + i, for_gamma, mask=inside)
    tl.store(dbeta + i, for_beta, mask=inside)


def layer_norm_backward(x, gamma, mean, rstd, dy, partial, dx, dgamma, dbeta):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    backward_kernel[(1,)](x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, columns, BLOCK=width, num_warps=4)
