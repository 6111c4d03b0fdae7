"""11 points: one program makes all tiles, one after the other."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    for top in range(0, m, BM):
        for left in range(0, n, BN):
            row, column = top + tl.arange(0, BM), left + tl.arange(0, BN)
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


def matmul_dot(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    product[(1,)](a, b, c, m, n, k, BM=64, BN=64, BK=32)
