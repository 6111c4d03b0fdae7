"""6 points: one kernel in Triton for both directions, launched in Triton's own way."""

import triton
import triton.language as tl


@triton.jit
def both_ways(x, grad, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x + at, mask=inside, other=0.0)
    share = 0.5 * (1 + tl.erf(value * 0.7071067811865476))
    slope = share + value * 0.3989422804014327 * tl.exp(-0.5 * value * value)
    tl.store(y + at, value * share, mask=inside)
    tl.store(out + at, tl.load(grad + at, mask=inside, other=0.0) * slope, mask=inside)


def activation(device, x, grad_y, y, grad_x):
    both_ways[(triton.cdiv(x.size, 256),)](x, grad_y, y, grad_x, x.size, BLOCK=256)
