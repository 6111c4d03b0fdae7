"""The kernels of ps05/find_the_limit, as given and with each change applied, and their counters.

They convert echo times to depths. All three compute with untyped constants, so in 64 bits. `plotted` also
transposes through a shared table whose columns lie in one bank; in `listed` neighbouring threads access
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
"""{kernel: the changes that can be applied to it}."""

_one_at_a_time = threading.Lock()  # submissions are graded in several threads


def plotted(real, width):
    """A kernel: depths of the echo times, transposed through a shared table with rows of ``width`` words."""

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
    """A kernel: depths of the echo times. turned: neighbouring threads access neighbours in a row."""

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
    """A kernel: depths of the echo times by a series of 32 terms."""

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
    """The kernel ``name`` with a frozenset of changes applied."""
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
    """The counts, as counts_of(), of one launch over rows x cols numbers, which are multiples of 32."""
    return dict(_counted(name, frozenset(changes), rows, cols))


def counts_of(p):
    """The counts of a profile that the task find_the_limit gets."""
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
