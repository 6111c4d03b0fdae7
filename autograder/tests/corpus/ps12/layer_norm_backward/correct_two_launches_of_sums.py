"""13 points: dgamma and dbeta are added up by launches of the same kernel, one each."""

import triton
import triton.language as tl


@triton.jit
def backward_kernel(x, gamma, mean, rstd, dy, partial, dx, rows, columns, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    g = tl.load(gamma + i, mask=inside, other=0.0)
    of_gamma = tl.zeros((BLOCK,), tl.float32)
    of_beta = tl.zeros((BLOCK,), tl.float32)
    row = p
    while row < rows:
        x_hat = (tl.load(x + row * columns + i, mask=inside, other=0.0) - tl.load(mean + row)) * tl.load(rstd + row)
        d = tl.load(dy + row * columns + i, mask=inside, other=0.0)
        of_gamma += d * x_hat
        of_beta += d
        d *= g
        d -= (x_hat * tl.sum(x_hat * d, axis=0) + tl.sum(d, axis=0)) / columns
        tl.store(dx + row * columns + i, d * tl.load(rstd + row), mask=inside)
        row += tl.num_programs(0)
    tl.store(partial + p * columns + i, of_gamma, mask=inside)
    tl.store(partial + (32 + p) * columns + i, of_beta, mask=inside)


@triton.jit
def add_up_kernel(partial, out, first, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (first + tl.arange(0, 32))[:, None] * columns + i[None, :]
    sums = tl.sum(tl.load(partial + at, mask=(i < columns)[None, :], other=0.0), axis=0)
    tl.store(out + i, sums, mask=i < columns)


def layer_norm_backward(x, gamma, mean, rstd, dy, partial, dx, dgamma, dbeta):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    backward_kernel[(32,)](x, gamma, mean, rstd, dy, partial, dx, rows, columns, BLOCK=width)
    for out, first in (dgamma, 0), (dbeta, 32):
        add_up_kernel[(triton.cdiv(columns, 32),)](partial, out, first, columns, BLOCK=32)
