"""The footprint of a launch: the distinct sectors of global memory that it touches.

Requests count a sector each time it is accessed; the footprint counts it once. It is a lower bound of the
traffic to memory: with cold caches of any size, every sector must be fetched at least once. It is exact for
arrays at multiples of 256 bytes, where the engine puts them, as ``cudaMalloc`` does.
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

    ``read`` and ``written``: by loads and stores; atomics do both. ``fetched``: read before the launch wrote
    there, so the data is from before the launch. ``touched``: read or written.
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

        ``scale``: blocks of the grid divided by blocks that ran. For a sample of blocks the counts are
        multiplied by it, up to the size of the buffer, which is an estimate.
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
    """Mark the sectors of the ``width`` bytes that begin ``behind`` bytes after each of ``offsets``."""
    done = -1  # the sector of the previous lane, which neighbours often share
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
