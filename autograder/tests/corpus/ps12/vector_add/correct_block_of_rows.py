"""10 points: a block of two dimensions, whose last one lies along memory."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = row * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.shape[0], 512),)](x, y, out, x.shape[0], 4, 128)
