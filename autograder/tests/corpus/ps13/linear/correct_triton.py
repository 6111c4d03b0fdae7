"""16 points: Triton, tiles of 16 x 16 by tl.dot in full float32."""

import triton
import triton.language as tl


@triton.jit
def multiply(
    left,
    right,
    bias,
    out,
    m,
    n,
    k,
    begins,
    left_down,
    left_across,
    right_down,
    right_across,
    WITH_BIAS: tl.constexpr,
    T: tl.constexpr,
):
    row = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    column = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    across, down = tl.arange(0, T)[None, :], tl.arange(0, T)[:, None]
    total = tl.zeros((T, T), tl.float32)
    for at in range(0, k, T):
        of_left = (row < m) & (at + across < k)
        of_right = (at + down < k) & (column < n)
        one = tl.load(left + begins + row * left_down + (at + across) * left_across, mask=of_left, other=0.0)
        two = tl.load(right + (at + down) * right_down + column * right_across, mask=of_right, other=0.0)
        total = tl.dot(one, two, total, input_precision="ieee")
    if WITH_BIAS:
        total += tl.load(bias + column, mask=column < n, other=0.0)
    tl.store(out + row * n + column, total, mask=(row < m) & (column < n))


@triton.jit
def add_up(grad, sums, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(grad + row * columns + column, mask=column < columns, other=0.0)
    tl.store(sums + column, total, mask=column < columns)


def tiles(m, n):
    return triton.cdiv(m, 16), triton.cdiv(n, 16)


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    (batch, outputs), inputs = grad_y.shape, x.shape[1]
    sizes, places = (batch, outputs, inputs), (first * inputs, inputs, 1, outputs, 1)
    multiply[tiles(batch, outputs)](x, w, b, y, *sizes, *places, WITH_BIAS=True, T=16)
    sizes, places = (batch, inputs, outputs), (0, outputs, 1, 1, outputs)
    multiply[tiles(batch, inputs)](grad_y, w, b, grad_x, *sizes, *places, WITH_BIAS=False, T=16)
    sizes, places = (inputs, outputs, batch), (first * inputs, 1, inputs, outputs, 1)
    multiply[tiles(inputs, outputs)](x, grad_y, b, grad_w, *sizes, *places, WITH_BIAS=False, T=16)
    add_up[triton.cdiv(outputs, 32),](grad_y, grad_b, batch, outputs, BLOCK=32, num_warps=1)
