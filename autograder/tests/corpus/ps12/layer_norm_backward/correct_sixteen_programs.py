"""13 points: 16 programs with neighbouring rows each, whose sums a loop adds up."""

import triton
import triton.language as tl


@triton.jit
def backward_kernel(x, gamma, mean, rstd, dy, partial, dx, rows, columns, each, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    g = tl.load(gamma + i, mask=inside, other=0.0)
    for_gamma = tl.zeros((BLOCK,), tl.float32)
    for_beta = tl.zeros((BLOCK,), tl.float32)
    for row in range(p * each, min(rows, (p + 1) * each)):
        scale = tl.load(rstd + row)
        h = (tl.load(x + row * columns + i, mask=inside, other=0.0) - tl.load(mean + row)) * scale
        d = tl.load(dy + row * columns + i, mask=inside, other=0.0)
        w = d * g
        along, level = tl.sum(h * w, axis=0) / columns, tl.sum(w, axis=0) / columns
        tl.store(dx + row * columns + i, (w - h * along - level) * scale, mask=inside)
        for_gamma += d * h
        for_beta += d
    tl.store(partial + 2 * p * columns + i, for_gamma, mask=inside)
    tl.store(partial + (2 * p + 1) * columns + i, for_beta, mask=inside)


@triton.jit
def add_up_kernel(partial, dgamma, dbeta, columns, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < columns
    for_gamma = tl.zeros((BLOCK,), tl.float32)
    for_beta = tl.zeros((BLOCK,), tl.float32)
    for p in range(PROGRAMS):
        for_gamma += tl.load(partial + 2 * p * columns + i, mask=inside)
        for_beta += tl.load(partial + (2 * p + 1) * columns + i, mask=inside)
    tl.store(dgamma + i, for_gamma, mask=inside)
    tl.store(dbeta + i, for_beta, mask=inside)


def layer_norm_backward(x, gamma, mean, rstd, dy, partial, dx, dgamma, dbeta):
    rows, columns = x.shape
    width, each = triton.next_power_of_2(columns), triton.cdiv(rows, 16)
    backward_kernel[(16,)](x, gamma, mean, rstd, dy, partial, dx, rows, columns, each, BLOCK=width)
    add_up_kernel[(triton.cdiv(columns, 64),)](partial, dgamma, dbeta, columns, PROGRAMS=16, BLOCK=64, num_warps=2)
