"""The kernels of ps05/find_the_limit, as they are given and with each change made, and what each counts.

Echo times become depths. All three kernels compute with bare constants, in 64 bits. `plotted` also writes
rows as columns, through a table whose columns lie in one bank; `listed` has neighbouring threads in
neighbouring rows; `refined` does many operations for each number.
"""

import functools
import threading

import numpy as np
from numba import cuda, float32, float64

from warplab.simt.profile import profile

TILE, TERMS = 32, 32
SINGLE, PAD, TURN, HALF = 1, 2, 3, 4  # the changes
FAULTS = {"plotted": (SINGLE, PAD, HALF), "listed": (SINGLE, TURN, HALF), "refined": (SINGLE, HALF)}
"""{kernel: the changes that find something to change in it}."""

_one_at_a_time = threading.Lock()  # a class is graded in threads


def plotted(real, width):
    """Depths of the echo times, rows as columns, through a table with rows of ``width`` words."""

    @cuda.jit
    def kernel(echo, out):
        table = cuda.shared.array((TILE, width), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        table[ty, tx] = echo[row, col]
        cuda.syncthreads()
        col, row = TILE * cuda.blockIdx.y + tx, TILE * cuda.blockIdx.x + ty
        t = table[tx, ty]
        out[row, col] = (real(0.0125) * t + real(0.75)) * t

    return kernel


def listed(real, turned):
    """Depths of the echo times; ``turned``: neighbours in x take neighbours in a row."""

    @cuda.jit
    def kernel(echo, out):
        if turned:
            col, row = cuda.grid(2)
        else:
            row, col = cuda.grid(2)
        t = float32(echo[row, col])
        out[row, col] = (real(0.0125) * t + real(0.75)) * t

    return kernel


def refined(real):
    """Depths of the echo times by a series of 32 terms."""

    @cuda.jit
    def kernel(echo, out):
        col, row = cuda.grid(2)
        t, depth = float32(echo[row, col]), real(0)
        for _ in range(TERMS):
            depth = real(0.98) * depth + t
        out[row, col] = depth

    return kernel


@functools.cache
def kernel_of(name, changes):
    """The kernel ``name`` with a frozenset of changes made."""
    real = float32 if SINGLE in changes else float64
    if name == "plotted":
        return plotted(real, TILE + (PAD in changes))
    return listed(real, TURN in changes) if name == "listed" else refined(real)


@functools.lru_cache(maxsize=512)
def _counted(name, changes, rows, cols):
    dtype = np.float16 if HALF in changes else np.float32
    echo, out = np.ones((rows, cols), dtype), np.zeros((rows, cols), dtype)
    if name == "plotted":
        out = out.reshape(cols, rows)
    grid = cols // TILE, rows // TILE
    if name == "listed" and TURN not in changes:
        grid = grid[::-1]
    with _one_at_a_time:
        return counts_of(profile(kernel_of(name, changes)[grid, (TILE, TILE)], echo, out))


def counted(name, changes, rows, cols):
    """The counts of one launch over rows x cols numbers, multiples of 32: a dict, as counts_of() has it."""
    return dict(_counted(name, frozenset(changes), rows, cols))


def counts_of(p):
    """What find_the_limit is told of a profile."""
    gx, gy, gz = p.grid
    return {
        "blocks": gx * gy * gz,
        "fp32": p.unit_flops.get("fp32", 0),
        "fp64": p.unit_flops.get("fp64", 0),
        "requests": p.global_memory.requests,
        "global_wavefronts": round(p.global_memory.passes),
        "wavefronts": p.shared_memory.wavefronts,
        "conflicts": p.shared_memory.bank_conflicts,
        "fetched": p.footprint.fetched,
        "written": p.footprint.written,
    }
