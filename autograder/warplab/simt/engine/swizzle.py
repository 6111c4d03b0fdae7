"""Swizzles of tiles in shared memory, as TMA writes them and ``wgmma`` reads them.

A swizzle of 32, 64 or 128 bytes permutes the 16-byte pieces of each row of that many bytes, by the number of
the 128-byte line that the row lies in: one, two or three bits of an address from bit 4 on are exclusive-ored
with as many from bit 7 on (PTX ISA, "Swizzling modes"; CUTLASS calls the three Swizzle<1, 4, 3>, <2, 4, 3>
and <3, 4, 3>). The pattern repeats after 256, 512 or 1024 bytes, counted from address 0 of shared memory and
not from the tile, so tiles begin at multiples of that.
"""

from __future__ import annotations

import numpy as np

SPANS = (0, 32, 64, 128)  # bytes; 0: nothing is permuted
PIECE = 16  # bytes that stay together


def swizzled(offset: np.ndarray, span: int) -> np.ndarray:
    """Where the bytes lie that without a swizzle would lie at ``offset``; it is its own inverse."""
    if span not in SPANS:
        raise ValueError(f"a swizzle is of 32, 64 or 128 bytes, or 0 for none, and not {span!r}")
    return offset ^ (offset >> 3 & max(0, span - PIECE))


def repeats_after(span: int) -> int:
    """Bytes after which a swizzle's pattern repeats; without one a piece."""
    return 8 * span or PIECE
