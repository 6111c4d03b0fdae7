"""Tensor maps: the 128 bytes that describe an array to TMA, so that it can copy boxes of it.

NVIDIA's 128 bytes are opaque (``cuTensorMapEncodeTiled`` writes them). Ours hold the same facts in the order
of ``LAYOUT``. Dimensions are in the order of the instructions, the innermost first.
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
        ("last", "u4", MOST_DIMENSIONS),  # the last index of each dimension
        ("box", "u2", MOST_DIMENSIONS),
        ("type", "S4"),
        ("swizzle", "u1"),
        ("fill", "u8"),
        ("rank", "u1"),
    ]
)


@dataclass(frozen=True)
class Map:
    """A tensor map: ``type`` is the PTX type of the elements, ``strides`` are in bytes, ``fill`` is the bit
    pattern of elements outside the array.
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
        """The bytes of a box, which are those that a copy completes at its mbarrier."""
        return math.prod(self.box) * self.itemsize

    def in_shared(self, offset: np.ndarray) -> np.ndarray:
        """The offsets of a box's bytes in shared memory before swizzling. With a swizzle, rows are as far
        apart as its span, even if they are shorter (seen on an H200).
        """
        row = self.box[0] * self.itemsize
        return offset if not self.swizzle else offset // row * self.swizzle + offset % row

    def encoded(self) -> bytes:
        """The tensor map as 128 bytes."""
        out, rank = np.zeros(1, LAYOUT), len(self.dims)
        for name in ("address", "type", "swizzle", "fill"):
            out[name] = getattr(self, name)
        out["magic"], out["rank"] = MAGIC, rank
        out["strides"][0, :rank], out["box"][0, :rank] = self.strides, self.box
        out["last"][0, :rank] = np.array(self.dims) - 1
        return out.tobytes().ljust(SIZE, b"\0")

    def places(self, corner: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(byte offsets of the elements in the array, whether the array has them), a row for each box, in the
        order of shared memory. ``corner``: for each dimension the boxes' first indices.
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
    """The Map in 128 bytes; None if they are not one."""
    one = np.frombuffer(data, LAYOUT, 1)[0]
    if one["magic"] != MAGIC:
        return None
    n = int(one["rank"])
    dims, strides, box = (tuple(map(int, one[name][:n])) for name in ("last", "strides", "box"))
    type_, swizzle, fill = one["type"].decode(), int(one["swizzle"]), int(one["fill"])
    return Map(int(one["address"]), tuple(d + 1 for d in dims), strides, box, type_, swizzle, fill)
