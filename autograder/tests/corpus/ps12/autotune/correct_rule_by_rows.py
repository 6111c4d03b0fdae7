"""17 points: a rule of its own, and nothing tuned: the number of rows says which tile."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        of_a = (row[:, None] < m) & (at[None, :] < k)
        of_b = (at[:, None] < k) & (column[None, :] < n)
        x = tl.load(a + row[:, None] * k + at[None, :], mask=of_a, other=0.0)
        y = tl.load(b + at[:, None] * n + column[None, :], mask=of_b, other=0.0)
        total = tl.dot(x, y, total)
    of_c = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * n + column[None, :], total, mask=of_c)


def multiply(rows, weights, out):
    (m, k), n = rows.shape, weights.shape[1]
    bm, bn, warps = (16, 32, 1) if m <= 32 else (64, 64, 4)
    grid = triton.cdiv(m, bm), triton.cdiv(n, bn)
    product[grid](rows, weights, out, m, n, k, BM=bm, BN=bn, BK=32, num_warps=warps)


def tuned_products(prompt, words, weights, out_prompt, out_words):
    multiply(words, weights, out_words)
    multiply(prompt, weights, out_prompt)
