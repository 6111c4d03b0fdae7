"""What the warm parent does before its first notebook with kernels, so that no such notebook has to.

The first use of a compiler costs more than the next hundred. Importing this module is that first use, and a
class without kernels is spared it.
"""

from typing import Any

import numba.cuda
import numpy as np
from numba import float32

import warplab

cuda: Any = numba.cuda  # it has no types
TILE = 4


@cuda.jit
def everyday(a: np.ndarray, b: int, out: np.ndarray) -> None:
    """A little of what students' kernels are made of.

    So its typing rules, its lowering and its opcodes are loaded.
    """
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
    """Compile and run it on the engine.

    Only where there is no CUDA device: a process that has used one can no longer fork.
    """
    if warplab.device().kind == "simt":
        a = np.ones((6, 6), np.float32)
        warplab.profile(everyday[(2, 2), (TILE, TILE)], a, 3, np.zeros_like(a))


everyday_kernel()
