"""10 points: lets the masked places differ from the mean, and takes their squares out of the sum again."""

import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, gamma, beta, eps, y, mean, rstd, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < columns
    value = tl.load(x + row * columns + i, mask=inside, other=0.0)
    # shifted by the first number, so that the masked places are small like all others
    first = tl.load(x + row * columns)
    value = tl.where(inside, value - first, 0.0)
    shift = tl.sum(value, axis=0) / columns
    apart = value - shift
    squares = tl.sum(apart * apart, axis=0) - (BLOCK - columns) * shift * shift
    scale = 1.0 / tl.sqrt(tl.maximum(squares, 0.0) / columns + eps)
    g = tl.load(gamma + i, mask=inside)
    b = tl.load(beta + i, mask=inside)
    tl.store(y + row * columns + i, apart * scale * g + b, mask=inside)
    tl.store(mean + row, first + shift)
    tl.store(rstd + row, scale)


def layer_norm(x, gamma, beta, eps, y, mean, rstd):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    norm_kernel[(rows,)](x, gamma, beta, eps, y, mean, rstd, columns, BLOCK=width)
