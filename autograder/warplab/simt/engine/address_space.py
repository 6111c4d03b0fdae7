"""The address space: maps virtual addresses to NumPy buffers, and prepares accesses for their checks.

Regions of global memory begin 2**36 bytes apart, each in the middle of its slot. So an index that is too
large or negative does not reach another array, and every out-of-bounds access is found, even one that would
hit another allocation on a GPU. A region's base is a multiple of 256 bytes, as cudaMalloc's are, so sectors
are counted as on a GPU, wherever NumPy put the buffer.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

import numpy as np

from warplab.simt.engine.indices import index_text

REGION_SHIFT = 36
FIRST_SLOT = 1 << 12  # lower slots are addresses of this process, for managed memory (same address on host)
REMEMBERED = 1 << 14  # unmapped regions that are kept for error messages


@dataclass
class Region:
    """One allocation: its ``data`` as bytes, and a ``label`` for messages ("argument 'out', float32[1000]").

    ``shape`` (() if unknown) and ``order`` ("C" or "F") are those of the array in it.
    """

    base: int
    data: np.ndarray
    label: str
    itemsize: int = 1
    writable: bool = True
    unset: bool = False  # constant memory that neither an initialiser nor the host has given a value
    shape: tuple[int, ...] = ()
    order: str = "C"
    start: int = 0  # the byte at which that array begins
    views: dict[str, np.ndarray] = field(default_factory=dict)
    words: tuple | None = None  # (argument name, its words in numba's convention), cached

    def holds(self, array, label: str) -> Region:
        """Note which array is in the region; returns the region."""
        self.label, self.itemsize, self.words = label, max(array.dtype.itemsize, 1), None
        self.shape, self.order = tuple(array.shape), "C"
        if len(self.shape) > 1 and not array.flags["C_CONTIGUOUS"]:
            self.order, self.shape = ("F", self.shape) if array.flags["F_CONTIGUOUS"] else ("C", ())
        return self

    def place(self, byte: int) -> str:
        """The element that a byte belongs to: "element [3, 16] of argument 'out' (float32[80, 48])"."""
        return f"element {self.index(byte)} of {self.label}"

    def index(self, byte: int) -> str:
        """The index of the element that a byte belongs to: ``[3, 16]``, or ``[259]`` if shape is unknown."""
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


UNMAPPED = Region(0, np.empty(0, np.uint8), "nothing")
"""Stands for the region of an address where nothing is allocated; its size is 0."""


class AddressSpace:
    """The global address space of one process: device arrays, and the arguments of running launches."""

    def __init__(self):
        self.regions: dict[int, Region] = {}
        self._next = FIRST_SLOT
        self._freed: OrderedDict[int, Region] = OrderedDict()
        # regions that kernels have allocated by malloc: how many allocations in each are not freed
        self.heap: dict[int, int] = {}
        self.allocations = self.releases = 0  # calls of malloc and free by threads of kernels

    def add(self, data: np.ndarray, label: str, itemsize: int = 1, writable: bool = True) -> Region:
        """Map ``data`` (contiguous bytes, uint8) and return its region."""
        slots = 1 + (data.size >> REGION_SHIFT)
        base = (self._next << REGION_SHIFT) + (1 << REGION_SHIFT - 1)  # so addresses below it are in the slot
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
        """The region in whose slot ``address`` is, even if the address is outside the region itself."""
        return self.regions.get(address >> REGION_SHIFT)

    def freed(self, address: int) -> Region | None:
        """The unmapped region in whose slot ``address`` is."""
        return self._freed.get(address >> REGION_SHIFT)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as one uint8 vector, not copied. Raises ValueError for others."""
    if array.size == 0:
        return np.empty(0, np.uint8)
    if not array.flags.forc:
        raise ValueError("the array is not contiguous")
    return array.reshape(-1, order="C" if array.flags.c_contiguous else "F").view(np.uint8)


class Access:
    """The addresses in one register, prepared for checks: offsets in their region, extremes and alignment.

    ``offset`` is int64, one element a lane or one for all. ``within`` is the same, but for shared and local
    memory relative to the block's or thread's own memory, for which bounds hold. ``bits`` is the bitwise or
    of all offsets, which tells their alignment. Accesses ``[%rd1]``, ``[%rd1+4]``, ``[%rd1+8]`` by the same
    register, also in later iterations, share one Access.
    """

    __slots__ = ("source", "region", "offset", "within", "high", "bits", "_low", "_index", "pattern")

    def __init__(self, source: np.ndarray, region: Region, offset: np.ndarray, within=None, step=0):
        """``step``: the distance of the starts of blocks' or threads' own memory, which limits alignment."""
        self.source, self.region, self.offset = source, region, offset
        self.within = within = offset if within is None else within
        self._low = None
        if within.size == 1:
            self.high = self.bits = within.item()
            if self.high < 0:
                self._low = self.high
        else:
            size = within.view(np.uint64)
            self.high = size.item(size.argmax())  # faster than max() for few elements
            if self.high >> 63:  # some offset is negative: a base below the array, or a stray pointer
                self.high, self._low = int(within.max()), int(within.min())
            self.bits = int(np.bitwise_or.reduce(within))
        self.bits |= step
        self._index: dict[int, np.ndarray] = {}
        self.pattern: dict = {}  # counters' results, by (constant offset modulo the period, width)

    @property
    def low(self) -> int:
        """The smallest offset, computed when asked: only accesses with a negative constant need it."""
        if self._low is None:
            self._low = int(self.within.min())
        return self._low

    def index(self, shift: int, offset: int = 0) -> np.ndarray:
        """The indices of the elements, of ``1 << shift`` bytes each, ``offset`` bytes after the addresses."""
        if offset & (1 << shift) - 1:
            return (self.offset + offset) >> shift
        found = self._index.get(shift)
        if found is None:
            found = self._index[shift] = self.offset >> shift if shift else self.offset
        return found + (offset >> shift) if offset else found
