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
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    columns = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    step, rest = tl.arange(0, BK), k
    left, right = a + rows * k + step[None, :], b + step[:, None] * n + columns
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    while rest > 0:
        x = tl.load(left, mask=(rows < m) & (step[None, :] < rest), other=0)
        acc += tl.dot(x, tl.load(right, mask=(step[:, None] < rest) & (columns < n), other=0))
        left += BK
        right += BK * n
        rest -= BK
    tl.store(c + rows * n + columns, acc, mask=(rows < m) & (columns < n))


def tuned_products(prompt, words, weights, out_prompt, out_words):
    k, n = weights.shape
    for a, c in ((prompt, out_prompt), (words, out_words)):
        m = a.shape[0]
        product[lambda tile: (triton.cdiv(m, tile["BM"]), triton.cdiv(n, tile["BN"]))](a, weights, c, m, n, k)
