"""Swizzled layouts of tiles in shared memory, which TMA writes and ``wgmma`` reads.

A swizzle of 32, 64 or 128 bytes permutes the 16-byte pieces of each row of that many bytes, depending on the
number of the row's 128-byte line: one, two or three bits of the address from bit 4 on are xored with as many
from bit 7 on (PTX ISA, "Swizzling modes"; CUTLASS calls the three Swizzle<1, 4, 3>, <2, 4, 3> and <3, 4, 3>).
The pattern repeats after 256, 512 or 1024 bytes, counted from address 0 of shared memory, not from the tile's
start; so tiles begin at multiples of that.
"""

from __future__ import annotations

import numpy as np

SPANS = (0, 32, 64, 128)  # bytes; 0: no swizzle
PIECE = 16  # bytes that a swizzle moves together


def swizzled(offset: np.ndarray, span: int) -> np.ndarray:
    """The swizzled offsets of bytes whose plain offsets are ``offset``. The function is its own inverse.

    ``span``: bytes of the swizzle, 0 for none; raises ValueError for others than in SPANS.
    """
    if span not in SPANS:
        raise ValueError(f"a swizzle has 32, 64 or 128 bytes, or 0 for none, and not {span!r}")
    return offset ^ (offset >> 3 & max(0, span - PIECE))
