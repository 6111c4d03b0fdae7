"""12 points: Triton, a program for each row; backward hands its row's parts of two gradients in by atomics."""

import triton
import triton.language as tl


@triton.jit
def forward(x, gain, shift, y, middles, scales, eps, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * width + at, mask=inside, other=0.0)
    middle = tl.sum(value, axis=0) / width
    apart = tl.where(inside, value - middle, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=0) / width + eps)
    by = tl.load(gain + at, mask=inside, other=0.0)
    plus = tl.load(shift + at, mask=inside, other=0.0)
    tl.store(y + row * width + at, apart * scale * by + plus, mask=inside)
    tl.store(middles + row, middle)
    tl.store(scales + row, scale)


@triton.jit
def backward(x, gain, grad_y, middles, scales, grad_x, grad_gain, grad_shift, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < width
    scale = tl.load(scales + row)
    hat = (tl.load(x + row * width + at, mask=inside, other=0.0) - tl.load(middles + row)) * scale
    grad = tl.load(grad_y + row * width + at, mask=inside, other=0.0)
    tl.atomic_add(grad_gain + at, grad * hat, mask=inside)
    tl.atomic_add(grad_shift + at, grad, mask=inside)
    grad *= tl.load(gain + at, mask=inside, other=0.0)
    level, along = tl.sum(grad, axis=0) / width, tl.sum(grad * hat, axis=0) / width
    tl.store(grad_x + row * width + at, scale * (grad - level - hat * along), mask=inside)


def layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift):
    rows, width = x.shape
    kept = device.empty(rows, "float32"), device.empty(rows, "float32")
    block = triton.next_power_of_2(width)
    forward[(rows,)](x, gain, shift, y, *kept, eps, width, BLOCK=block)
    device.fill(grad_gain, 0)
    device.fill(grad_shift, 0)
    backward[(rows,)](x, gain, grad_y, *kept, grad_x, grad_gain, grad_shift, width, BLOCK=block)
