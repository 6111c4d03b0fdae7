"""Generic addresses: the top four bits say in which memory space an address lies.

Shared memory's window begins at 2**60 and local memory's at 2**61; an address in either is an offset into the
thread's own shared or local memory. In the window from 3 * 2**60 on lies the shared memory of a cluster's
other blocks (``clusters``). All other addresses are global (constants lie there too).
"""

from __future__ import annotations

import numpy as np

SPACE_SHIFT = np.uint64(60)
WINDOW = {"shared": 1 << 60, "local": 1 << 61, "cluster": 3 << 60}
PARAMETERS = 1 << 21  # where the space of parameters begins, which generic addresses do not reach
SPACE_OF_WINDOW = {start >> 60: space for space, start in WINDOW.items()}


def space_keys(address: np.ndarray) -> np.ndarray:
    """A number for each lane's address, equal where the addresses lie in one space."""
    return address >> SPACE_SHIFT


def in_several_spaces(address: np.ndarray) -> bool:
    """Whether the lanes' addresses lie in more than one space."""
    return address.size > 1 and bool(((address ^ address[0]) >> SPACE_SHIFT).any())


def resolve(address: np.ndarray) -> tuple[str, np.ndarray]:
    """The space of addresses that all lie in one, and the addresses in it."""
    space = SPACE_OF_WINDOW.get(int(address[0] >> SPACE_SHIFT))
    if space is None:
        return "global", address
    return space, address - np.uint64(WINDOW[space])
