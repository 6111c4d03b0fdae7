"""18 points: no mask along k but in the last step, and no pipeline; tiles of 64 x 64 and small steps."""

import triton
import triton.language as tl


@triton.jit
def step(total, a, b, row, column, at, m, n, k):
    x = tl.load(a + row * k + at[None, :], mask=(row < m) & (at[None, :] < k), other=0.0)
    y = tl.load(b + at[:, None] * n + column, mask=(at[:, None] < k) & (column < n), other=0.0)
    return tl.dot(x, y, acc=total)


@triton.jit
def product(a, b, c, m, n, k, TILE: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE))[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    whole = k // BK
    for number in tl.range(0, whole, num_stages=1):
        total = step(total, a, b, row, column, number * BK + tl.arange(0, BK), m, n, k)
    if whole * BK < k:
        total = step(total, a, b, row, column, whole * BK + tl.arange(0, BK), m, n, k)
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


def matmul_dot(a, b, c):
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    product[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, TILE=64, BK=16)
