"""Generic addresses: the top four bits tell an address's state space.

The window of shared memory begins at 2**60 and that of local memory at 2**61; an address in either is an
offset into the thread's own shared or local memory. The window from 3 * 2**60 on is the shared memory of the
other blocks of a cluster (``clusters``). All other addresses are global memory, which includes constants.
"""

from __future__ import annotations

import numpy as np

SPACE_SHIFT = np.uint64(60)
WINDOW = {"shared": 1 << 60, "local": 1 << 61, "cluster": 3 << 60}
PARAMETERS = 1 << 21  # the address of the first parameter; not a generic address
SPACE_OF_WINDOW = {start >> 60: space for space, start in WINDOW.items()}


def space_keys(address: np.ndarray) -> np.ndarray:
    """A number for each lane's address, equal for addresses in one state space."""
    return address >> SPACE_SHIFT


def in_several_spaces(address: np.ndarray) -> bool:
    """Whether the lanes' addresses are in more than one state space."""
    return address.size > 1 and bool(((address ^ address[0]) >> SPACE_SHIFT).any())


def resolve(address: np.ndarray) -> tuple[str, np.ndarray]:
    """(state space, addresses in it) of generic addresses that are all in one space."""
    space = SPACE_OF_WINDOW.get(int(address[0] >> SPACE_SHIFT))
    if space is None:
        return "global", address
    return space, address - np.uint64(WINDOW[space])
