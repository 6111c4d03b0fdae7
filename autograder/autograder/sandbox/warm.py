"""Importing this module warms up the compiler and the engine, once for all notebooks with kernels.

The first use of a compiler takes longer than the next hundred. The warm parent imports this module before the
first notebook with kernels; a class without kernels never pays for it.
"""

from typing import Any

import numba.cuda
import numpy as np
from numba import float32

import warplab

cuda: Any = numba.cuda  # numba has no type annotations
TILE = 4


@cuda.jit
def everyday(a: np.ndarray, b: int, out: np.ndarray) -> None:
    """A kernel with the usual parts of students' kernels: loads their typing rules, lowering and opcodes."""
    tile = cuda.shared.array((TILE, TILE), float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else float32(0)
    cuda.syncthreads()
    acc = float32(0)
    for k in range(TILE):
        acc += tile[y, k] * tile[k, x]
    count, z = 0, complex(acc, 1.0)
    while abs(z) < 4.0 and count < min(b, 8):
        z = z * z + 0.5
        count += 1
    step = cuda.gridsize(1)
    for i in range(col, out.shape[1], step):
        if row < out.shape[0]:
            out[row, i] = max(acc, -acc) // 2 + acc % 3 + count / 2.0 - acc**2 + (row & 1)


def everyday_kernel() -> None:
    """Compile and run `everyday` on the engine; not on a CUDA device, after whose use no process can fork."""
    if warplab.device().kind == "simt":
        a = np.ones((6, 6), np.float32)
        warplab.profile(everyday[(2, 2), (TILE, TILE)], a, 3, np.zeros_like(a))


everyday_kernel()
