"""18 points: a grid of one axis in groups of rows of tiles; addresses move on, and rows past the end wrap round."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tile, across = tl.program_id(0), tl.cdiv(N, BN)
    first = tile // (GROUP * across) * GROUP
    size = min(tl.cdiv(M, BM) - first, GROUP)
    m = (first + tile % (GROUP * across) % size) * BM + tl.arange(0, BM)
    n = tile % (GROUP * across) // size * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_at = a + (m % M)[:, None] * K + k[None, :]
    b_at = b + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        left = tl.load(a_at, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b_at, mask=k[:, None] < K - step * BK, other=0.0)
        total += tl.dot(left, right)
        a_at += BK
        b_at += BK * N
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul_dot(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 128)
    product[(tiles,)](a, b, c, m, n, k, BM=64, BN=128, BK=32, GROUP=4)
