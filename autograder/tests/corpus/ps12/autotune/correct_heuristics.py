"""17 points: Triton's heuristics, functions of the arguments, in place of a list."""

import triton
import triton.language as tl


@triton.heuristics(
    {
        "BM": lambda given: 16 if given["m"] <= 16 else 64,
        "BN": lambda given: 64,
        "BK": lambda given: 32,
    }
)
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


def tuned_products(prompt, words, weights, out_prompt, out_words):
    k, n = weights.shape
    for a, c in ((prompt, out_prompt), (words, out_words)):
        m = a.shape[0]
        product[lambda tile: (triton.cdiv(m, tile["BM"]), triton.cdiv(n, tile["BN"]))](a, weights, c, m, n, k)
