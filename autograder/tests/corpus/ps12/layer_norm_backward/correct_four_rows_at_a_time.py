"""13 points: each program takes blocks of four rows."""

import triton
import triton.language as tl


@triton.jit
def backward_kernel(x, gamma, mean, rstd, dy, partial, dx, rows, columns, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    g = tl.load(gamma + i, mask=i < columns, other=0.0)[None, :]
    for_gamma = tl.zeros((4, BLOCK), tl.float32)
    for_beta = tl.zeros((4, BLOCK), tl.float32)
    for start in range(4 * p, rows, 128):
        row = start + tl.arange(0, 4)
        inside = (row < rows)[:, None] & (i < columns)[None, :]
        at = row[:, None] * columns + i[None, :]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        m = tl.load(mean + row, mask=row < rows, other=0.0)[:, None]
        h = (tl.load(x + at, mask=inside, other=0.0) - m) * scale
        d = tl.load(dy + at, mask=inside, other=0.0)
        w = d * g
        along = tl.sum(h * w, axis=1, keep_dims=True) / columns
        level = tl.sum(w, axis=1, keep_dims=True) / columns
        tl.store(dx + at, (w - h * along - level) * scale, mask=inside)
        for_gamma += d * h
        for_beta += d
    at = p * columns + i
    tl.store(partial + at, tl.sum(for_gamma, axis=0), mask=i < columns)
    tl.store(partial + 32 * columns + at, tl.sum(for_beta, axis=0), mask=i < columns)


@triton.jit
def add_up_kernel(partial, dgamma, dbeta, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.arange(0, 32)[:, None] * columns + i[None, :]
    inside = (i < columns)[None, :]
    tl.store(dgamma + i, tl.sum(tl.load(partial + at, mask=inside, other=0.0), axis=0), mask=i < columns)
    at += 32 * columns
    tl.store(dbeta + i, tl.sum(tl.load(partial + at, mask=inside, other=0.0), axis=0), mask=i < columns)


def layer_norm_backward(x, gamma, mean, rstd, dy, partial, dx, dgamma, dbeta):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    backward_kernel[(32,)](x, gamma, mean, rstd, dy, partial, dx, rows, columns, BLOCK=width, num_warps=8)
    add_up_kernel[(triton.cdiv(columns, 16),)](partial, dgamma, dbeta, columns, BLOCK=16)
