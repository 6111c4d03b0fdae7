"""Memory spaces: virtual addresses to NumPy buffers, with bounds and alignment checked on every access.

Global regions lie 2**36 bytes apart, so that an index that is too large or negative cannot fall into another array:
every out-of-bounds access is found, also one that would have hit a live allocation. A region's base is a multiple of
256 bytes, as cudaMalloc's are, so sectors are counted as a GPU counts them wherever NumPy put the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

REGION_SHIFT = 36
SHARED_WINDOW, LOCAL_WINDOW = 1 << 60, 1 << 61


@dataclass
class Region:
    """One allocation: its ``data`` as bytes and a ``label`` for messages ("argument 'out', float32[1000]")."""

    base: int
    data: np.ndarray
    label: str
    itemsize: int = 1
    writable: bool = True
    views: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.data.size

    def view(self, dtype: str) -> np.ndarray:
        """The buffer as elements of ``dtype``; a tail shorter than one element is left out."""
        v = self.views.get(dtype)
        if v is None:
            width = np.dtype(dtype).itemsize
            v = self.views[dtype] = self.data[: self.size // width * width].view(dtype)
        return v


class AddressSpace:
    """The global address space of one process: device arrays live in it, launch arguments come and go."""

    def __init__(self):
        self.regions: dict[int, Region] = {}
        self._next = 1
        self._freed: dict[int, str] = {}

    def add(self, data: np.ndarray, label: str, itemsize: int = 1, writable: bool = True) -> Region:
        """Map ``data`` (contiguous bytes, uint8) and return its region."""
        slots = max(1, -(-data.size >> REGION_SHIFT)) + 1
        region = Region(self._next << REGION_SHIFT, data, label, itemsize, writable)
        self.regions[self._next] = region
        self._next += slots
        return region

    def remove(self, region: Region) -> None:
        """Unmap; a later access through an old pointer is a use after free."""
        key = region.base >> REGION_SHIFT
        if self.regions.pop(key, None) is not None:
            self._freed[key] = region.label

    def find(self, address: int) -> Region | None:
        """The region whose slot ``address`` lies in; an address just below a base belongs to the slot below it."""
        return self.regions.get(address >> REGION_SHIFT)

    def nearest(self, address: int) -> Region | None:
        """For messages: the region that an out-of-bounds address most likely started from."""
        if not self.regions:
            return None
        return min(self.regions.values(), key=lambda r: abs(r.base - address))

    def freed(self, address: int) -> str | None:
        return self._freed.get(address >> REGION_SHIFT)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as one uint8 vector, sharing it."""
    order = "C" if array.flags.c_contiguous else "F"
    flat = array.reshape(-1, order=order)
    if flat.size == 0:
        return np.empty(0, np.uint8)
    if not np.shares_memory(flat, array):
        raise ValueError("the array is not contiguous")
    return flat.view(np.uint8)


class Access:
    """Addresses of one register value, prepared once: offsets into their region, extremes and alignment.

    ``offset`` is int64, one element per lane or one for all. A kernel reads ``[%rd1]``, ``[%rd1+4]``, ``[%rd1+8]``...
    off the same register, and reads them again in the next iteration: the preparation is shared.
    """

    __slots__ = ("source", "region", "offset", "low", "high", "bits", "_index", "pattern")

    def __init__(self, source: np.ndarray, region: Region | None, offset: np.ndarray):
        self.source, self.region, self.offset = source, region, offset
        self.low, self.high = int(offset.min()), int(offset.max())
        self.bits = int(np.bitwise_or.reduce(offset))
        self._index: dict[int, np.ndarray] = {}
        self.pattern: dict = {}  # counters' results, by (constant offset modulo the period, width)

    def index(self, shift: int) -> np.ndarray:
        found = self._index.get(shift)
        if found is None:
            found = self._index[shift] = self.offset >> shift if shift else self.offset
        return found
