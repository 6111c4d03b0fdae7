"""Tensor maps: what TMA must know of an array to copy boxes of it, in the 128 bytes that a kernel is given.

NVIDIA's own 128 bytes are opaque, and ``cuTensorMapEncodeTiled`` fills them. Here they hold the same facts in
the order of ``LAYOUT``. Dimensions are counted as the instructions count them, the innermost first.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from warplab.simt.ptx.ptx_types import TYPES

SIZE, ALIGNED = 128, 64  # bytes
MOST_DIMENSIONS, LONGEST_BOX = 5, 256
MAGIC = b"warplab1"
LAYOUT = np.dtype(
    [
        ("magic", "S8"),
        ("address", "u8"),
        ("strides", "u8", MOST_DIMENSIONS),
        ("last", "u4", MOST_DIMENSIONS),  # index of each dimension
        ("box", "u2", MOST_DIMENSIONS),
        ("type", "S4"),
        ("swizzle", "u1"),
        ("fill", "u8"),
        ("rank", "u1"),
    ]
)


@dataclass(frozen=True)
class Map:
    """``type``: PTX's name of the elements' type. ``strides`` in bytes. ``fill``: an element's bits outside
    of the array.
    """

    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    type: str
    swizzle: int = 0
    fill: int = 0

    @property
    def itemsize(self) -> int:
        return TYPES[self.type].bytes

    @property
    def bytes(self) -> int:
        """That a copy of a box brings."""
        return math.prod(self.box) * self.itemsize

    def in_shared(self, offset: np.ndarray) -> np.ndarray:
        """Where a box's bytes lie in shared memory, counted from its start, before they are swizzled: with a
        swizzle rows lie as many bytes apart as it has, however long they are (seen on an H200).
        """
        row = self.box[0] * self.itemsize
        return offset if not self.swizzle else offset // row * self.swizzle + offset % row

    def encoded(self) -> bytes:
        """The 128 bytes."""
        out, rank = np.zeros(1, LAYOUT), len(self.dims)
        for name in ("address", "type", "swizzle", "fill"):
            out[name] = getattr(self, name)
        out["magic"], out["rank"] = MAGIC, rank
        out["strides"][0, :rank], out["box"][0, :rank] = self.strides, self.box
        out["last"][0, :rank] = np.array(self.dims) - 1
        return out.tobytes().ljust(SIZE, b"\0")

    def places(self, corner: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Of the boxes that begin at ``corner`` (an index a dimension, of each box): the bytes at which their
        elements lie, from the array's first on, and which of them the array has. A row a box, in the order in
        which they lie in shared memory.
        """
        boxes, rank = corner[0].size, len(self.dims)
        at, there = np.zeros((boxes, *[1] * rank), np.int64), np.ones((boxes, *[1] * rank), bool)
        for d in range(rank):
            shape = (boxes, *(-1 if rank - 1 - e == d else 1 for e in range(rank)))
            index = (corner[d].astype(np.int64)[:, None] + np.arange(self.box[d])).reshape(shape)
            at = at + index * self.strides[d]
            there = there & (index >= 0) & (index < self.dims[d])
        return at.reshape(boxes, -1), there.reshape(boxes, -1)


@functools.lru_cache(maxsize=256)
def decoded(data: bytes) -> Map | None:
    """The map in 128 bytes; None if they hold none."""
    one = np.frombuffer(data, LAYOUT, 1)[0]
    if one["magic"] != MAGIC:
        return None
    n = int(one["rank"])
    dims, strides, box = (tuple(map(int, one[name][:n])) for name in ("last", "strides", "box"))
    type_, swizzle, fill = one["type"].decode(), int(one["swizzle"]), int(one["fill"])
    return Map(int(one["address"]), tuple(d + 1 for d in dims), strides, box, type_, swizzle, fill)
