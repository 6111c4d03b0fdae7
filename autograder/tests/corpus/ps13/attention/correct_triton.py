"""10 points: Triton, a program for each row, which looks at the whole of its sequence at once."""

import triton
import triton.language as tl


@triton.jit
def rows_of(matrix, begins, length, width, L: tl.constexpr, W: tl.constexpr):
    """The rows of a sequence, with zeros around them."""
    row, at = tl.arange(0, L)[:, None], tl.arange(0, W)[None, :]
    inside = (row < length) & (at < width)
    return tl.load(matrix + (begins + row) * width + at, mask=inside, other=0.0)


@triton.jit
def one_row(matrix, row, width, W: tl.constexpr):
    at = tl.arange(0, W)
    return tl.load(matrix + row * width + at, mask=at < width, other=0.0)[None, :]


@triton.jit
def attend(q, k, v, out, logs, length, width, scale, L: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0)
    begins, at = row // length * length, tl.arange(0, W)
    keys, values = rows_of(k, begins, length, width, L, W), rows_of(v, begins, length, width, L, W)
    score = tl.sum(one_row(q, row, width, W) * keys, axis=1) * scale
    score = tl.where(tl.arange(0, L) <= row - begins, score, -float("inf"))
    most = tl.max(score, axis=0)
    power = tl.exp(score - most)
    total = tl.sum(power, axis=0)
    mean = tl.sum(power[:, None] * values, axis=0) / total
    tl.store(out + row * width + at, mean, mask=at < width)
    tl.store(logs + 2 * row, most)
    tl.store(logs + 2 * row + 1, total)


@triton.jit
def back_to_queries(q, k, v, grad, out, logs, grad_q, length, width, scale, L: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0)
    begins, at = row // length * length, tl.arange(0, W)
    keys, values = rows_of(k, begins, length, width, L, W), rows_of(v, begins, length, width, L, W)
    score = tl.sum(one_row(q, row, width, W) * keys, axis=1) * scale
    p = tl.exp(score - tl.load(logs + 2 * row)) / tl.load(logs + 2 * row + 1)
    p = tl.where(tl.arange(0, L) <= row - begins, p, 0.0)
    mine = one_row(grad, row, width, W)
    both = tl.sum(mine * one_row(out, row, width, W))
    by_score = p * (tl.sum(mine * values, axis=1) - both) * scale
    tl.store(grad_q + row * width + at, tl.sum(by_score[:, None] * keys, axis=0), mask=at < width)


@triton.jit
def back_to_keys(
    q, k, v, grad, out, logs, grad_k, grad_v, length, width, scale, L: tl.constexpr, W: tl.constexpr
):
    row = tl.program_id(0)
    begins, at, other = row // length * length, tl.arange(0, W), tl.arange(0, L)
    looks = (other >= row - begins) & (other < length)
    queries, grads = rows_of(q, begins, length, width, L, W), rows_of(grad, begins, length, width, L, W)
    score = tl.sum(one_row(k, row, width, W) * queries, axis=1) * scale
    most = tl.load(logs + 2 * (begins + other), mask=looks, other=0.0)
    total = tl.load(logs + 2 * (begins + other) + 1, mask=looks, other=1.0)
    p = tl.where(looks, tl.exp(tl.where(looks, score - most, 0.0)) / total, 0.0)
    both = tl.sum(grads * rows_of(out, begins, length, width, L, W), axis=1)
    by_score = p * (tl.sum(one_row(v, row, width, W) * grads, axis=1) - both) * scale
    tl.store(grad_k + row * width + at, tl.sum(by_score[:, None] * queries, axis=0), mask=at < width)
    tl.store(grad_v + row * width + at, tl.sum(p[:, None] * grads, axis=0), mask=at < width)


def attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v):
    (rows, width), kept = q.shape, device.empty((q.shape[0], 2), "float32")
    blocks = {"L": triton.next_power_of_2(length), "W": triton.next_power_of_2(width), "num_warps": 1}
    sizes = length, width, width**-0.5
    attend[(rows,)](q, k, v, out, kept, *sizes, **blocks)
    back_to_queries[(rows,)](q, k, v, grad_out, out, kept, grad_q, *sizes, **blocks)
    back_to_keys[(rows,)](q, k, v, grad_out, out, kept, grad_k, grad_v, *sizes, **blocks)
