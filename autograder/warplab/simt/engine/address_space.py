"""Memory spaces: virtual addresses to NumPy buffers, with bounds and alignment checked on every access.

Global regions lie 2**36 bytes apart, each in the middle of its slot, so that an index that is too large or
negative cannot fall into another array: every out-of-bounds access is found, also one that would have hit a
live allocation. A region's base is a multiple of 256 bytes, as cudaMalloc's are, so sectors are counted as a
GPU counts them wherever NumPy put the buffer.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

import numpy as np

from warplab.simt.engine.indices import index_text

REGION_SHIFT = 36
FIRST_SLOT = 1 << 12  # those below hold addresses of this process: managed memory has one address for both
REMEMBERED = 1 << 14  # regions that were unmapped, of which a program of small launches has many


@dataclass
class Region:
    """One allocation: its ``data`` as bytes and a ``label`` for messages ("argument 'out',
    float32[1000]").

    ``shape`` and ``order`` ("C" or "F") are those of the array it holds, () where that is not known.
    """

    base: int
    data: np.ndarray
    label: str
    itemsize: int = 1
    writable: bool = True
    unset: bool = False  # constant memory that no initialiser and no host code has given a value
    shape: tuple[int, ...] = ()
    order: str = "C"
    start: int = 0  # the byte at which that array begins
    views: dict[str, np.ndarray] = field(default_factory=dict)
    told: tuple | None = None  # the last description of the array, if it still holds

    def holds(self, array, label: str) -> Region:
        """Note which array lies in the region; returns the region."""
        self.label, self.itemsize, self.told = label, max(array.dtype.itemsize, 1), None
        self.shape, self.order = tuple(array.shape), "C"
        if len(self.shape) > 1 and not array.flags["C_CONTIGUOUS"]:
            self.order, self.shape = ("F", self.shape) if array.flags["F_CONTIGUOUS"] else ("C", ())
        return self

    def place(self, byte: int) -> str:
        """ "element [3, 16] of argument 'out' (float32[80, 48])": the element that a byte belongs to."""
        return f"element {self.index(byte)} of {self.label}"

    def index(self, byte: int) -> str:
        """``[3, 16]`` of the element that a byte belongs to; of an unknown shape ``[259]``."""
        return index_text((byte - self.start) // self.itemsize, self.shape or (0,), self.order)

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


NOWHERE = Region(0, np.empty(0, np.uint8), "nothing")
"""The region of an address where nothing is allocated; nothing fits in it."""


class AddressSpace:
    """The global address space of one process: device arrays live in it, launch arguments come and go."""

    def __init__(self):
        self.regions: dict[int, Region] = {}
        self._next = FIRST_SLOT
        self._freed: OrderedDict[int, Region] = OrderedDict()
        # regions that kernels allocated themselves, and how many of their parts are in use
        self.heap: dict[int, int] = {}
        self.allocations = self.releases = 0  # by kernels' threads

    def add(self, data: np.ndarray, label: str, itemsize: int = 1, writable: bool = True) -> Region:
        """Map ``data`` (contiguous bytes, uint8) and return its region."""
        slots = 1 + (data.size >> REGION_SHIFT)
        base = (self._next << REGION_SHIFT) + (1 << REGION_SHIFT - 1)  # a pointer a little below finds it too
        region = Region(base, data, label, itemsize, writable)
        self.regions[self._next] = region
        self._next += slots
        return region

    def add_at(self, base: int, data: np.ndarray, label: str) -> Region:
        """Map ``data`` at its own address ``base``, a multiple of a slot's size."""
        region = self.regions[base >> REGION_SHIFT] = Region(base, data, label)
        return region

    def remove(self, region: Region) -> None:
        """Unmap; a later access through an old pointer is a use after free."""
        key = region.base >> REGION_SHIFT
        if self.regions.pop(key, None) is not None:
            self._freed[key] = replace(region, data=region.data[:0], views={})
            if len(self._freed) > REMEMBERED:
                self._freed.popitem(last=False)

    def find(self, address: int) -> Region | None:
        """The region whose slot ``address`` lies in, also if the address is outside the region itself."""
        return self.regions.get(address >> REGION_SHIFT)

    def freed(self, address: int) -> Region | None:
        """What was once mapped where ``address`` points."""
        return self._freed.get(address >> REGION_SHIFT)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as one uint8 vector, sharing it."""
    if array.size == 0:
        return np.empty(0, np.uint8)
    if not array.flags.forc:
        raise ValueError("the array is not contiguous")
    return array.reshape(-1, order="C" if array.flags.c_contiguous else "F").view(np.uint8)


class Access:
    """Addresses of one register value, prepared once: offsets into their region, extremes and alignment.

    ``offset`` is int64, one element per lane or one for all; ``within`` holds the same relative to the block
    or thread for shared and local memory, where bounds hold per block or thread. A kernel reads ``[%rd1]``,
    ``[%rd1+4]``, ``[%rd1+8]``... off the same register, and reads them again in the next iteration: the
    preparation is shared.
    """

    __slots__ = ("source", "region", "offset", "within", "high", "bits", "_low", "_index", "pattern")

    def __init__(self, source: np.ndarray, region: Region, offset: np.ndarray, within=None, step=0):
        """``step``: what the starts of blocks' or threads' own memory are multiples of, 0 if of any width."""
        self.source, self.region, self.offset = source, region, offset
        self.within = within = offset if within is None else within
        self._low = None
        if within.size == 1:
            self.high = self.bits = within.item()
            if self.high < 0:
                self._low = self.high
        else:
            size = within.view(np.uint64)
            self.high = size.item(size.argmax())  # quicker than max() where there are few
            if self.high >> 63:  # some offset is negative: a base below the array, or a stray pointer
                self.high, self._low = int(within.max()), int(within.min())
            self.bits = int(np.bitwise_or.reduce(within))
        self.bits |= step
        self._index: dict[int, np.ndarray] = {}
        self.pattern: dict = {}  # counters' results, by (constant offset modulo the period, width)

    @property
    def low(self) -> int:
        """The smallest offset; needed only where a constant is subtracted from it, so found when asked."""
        if self._low is None:
            self._low = int(self.within.min())
        return self._low

    def index(self, shift: int, offset: int = 0) -> np.ndarray:
        """The numbers of the elements of ``1 << shift`` bytes that lie ``offset`` bytes behind."""
        if offset & (1 << shift) - 1:
            return (self.offset + offset) >> shift
        found = self._index.get(shift)
        if found is None:
            found = self._index[shift] = self.offset >> shift if shift else self.offset
        return found + (offset >> shift) if offset else found
