"""The footprint of a launch: which sectors of global memory it touches, each counted once.

Requests count a sector again whenever it is asked for. The footprint counts it once, however often it is used
and whatever a cache keeps: from cold caches of any size, every sector in it has to come from memory at least
once. It is exact for the arrays as they lie here, at multiples of 256 bytes as ``cudaMalloc`` gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplab.simt.counters.collect import SECTOR_SHIFT, compiled
from warplab.simt.counters.counts import Summed
from warplab.simt.engine.address_space import Region
from warplab.simt.observer import Observer

READ, WRITTEN, FETCHED = np.uint8(1), np.uint8(2), np.uint8(4)
SECTOR = 1 << SECTOR_SHIFT


@dataclass
class Footprint(Summed):
    """Bytes of the distinct 32-byte sectors that a launch touches.

    ``read`` and ``written``: by loads and stores, atomics being both. ``fetched``: read before the launch
    wrote there, so that the data come from before it. ``touched``: read or written.
    """

    read: int = 0
    written: int = 0
    fetched: int = 0
    touched: int = 0


class DistinctSectors(Observer):
    """Observer that marks the sectors that are read and written. Read ``by_buffer()`` afterwards."""

    def __init__(self):
        self._marks: dict[int, tuple[Region, np.ndarray]] = {}

    def by_buffer(self, scale: float = 1.0) -> dict[str, Footprint]:
        """The footprint of each buffer that was touched, by its label.

        ``scale``: blocks of the grid for each block that ran. What a sample of the blocks touched is scaled
        by it, up to the whole buffer: an estimate.
        """
        found: dict[str, Footprint] = {}
        for region, marks in self._marks.values():
            read, written, fetched, touched = (
                SECTOR * min(round(scale * int(np.count_nonzero(marks & bits))), -(-region.size // SECTOR))
                for bits in (READ, WRITTEN, FETCHED, 0xFF)
            )
            one = Footprint(read, written, fetched, touched)
            found[region.label] = found.get(region.label, Footprint()) + one
        return found

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "global":
            return
        key = "footprint", what, offset, width
        if key in access.pattern:  # these addresses are marked already
            return
        access.pattern[key] = True
        region = access.region
        if region.base not in self._marks:
            self._marks[region.base] = region, np.zeros((region.size >> SECTOR_SHIFT) + 1, np.uint8)
        _mark(self._marks[region.base][1], access.offset, offset, width, what != "write", what != "read")


@compiled
def _mark(marks, offsets, behind, width, reads, writes):
    """Mark the sectors of ``width`` bytes that begin ``behind`` each of ``offsets``."""
    done = -1  # neighbours share a sector
    for at in offsets:
        first, last = at + behind >> SECTOR_SHIFT, at + behind + width - 1 >> SECTOR_SHIFT
        if first == last == done:
            continue
        for sector in range(first, last + 1):
            if reads:
                marks[sector] |= READ if marks[sector] & WRITTEN else READ | FETCHED
            if writes:
                marks[sector] |= WRITTEN
        done = last
