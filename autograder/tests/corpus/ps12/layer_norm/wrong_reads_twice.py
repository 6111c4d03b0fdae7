"""7 points: walks along each row in pieces, once for the two numbers and once for y."""

import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, gamma, beta, eps, y, mean, rstd, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x += row * columns
    first = tl.load(x)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + i < columns
        value = tl.where(inside, tl.load(x + start + i, mask=inside, other=0.0) - first, 0.0)
        total += value
        squares += value * value
    shift = tl.sum(total, axis=0) / columns
    middle = first + shift
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns - shift * shift + eps)
    for start in range(0, columns, BLOCK):
        inside = start + i < columns
        value = tl.load(x + start + i, mask=inside)
        g, b = tl.load(gamma + start + i, mask=inside), tl.load(beta + start + i, mask=inside)
        tl.store(y + row * columns + start + i, (value - middle) * scale * g + b, mask=inside)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)


def layer_norm(x, gamma, beta, eps, y, mean, rstd):
    norm_kernel[(x.shape[0],)](x, gamma, beta, eps, y, mean, rstd, x.shape[1], BLOCK=256)
