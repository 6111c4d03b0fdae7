"""Names of bytes in memory in the student's terms: ``tile[3, 16]``, not byte 260 of shared memory.

The names and shapes of shared arrays are part of the names of their PTX variables (``shared_symbol``), so
they are known wherever the PTX runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SHARED_PREFIX = "_cudapy_smem_"  # how the symbols of numba's shared arrays begin
SHARED_SYMBOL = re.compile(
    r"(?:_cudapy_smem|static_shared_memory)_\d+\$(\w{0,40})\$(\d{1,9}(?:x\d{1,9}){0,7})\$([a-z]+\d{0,3})"
)
STATIC_LOCAL = re.compile(r"_ZZ.*E(\d+)(\w+)")  # a variable inside a C++ function, as its name is mangled


def index_text(element: int, shape: Sequence[int], order: str = "C") -> str:
    """``[3, 16]``: the index of an element, numbered in memory order, of an array of this shape.

    An element past either end gets the index that it would have if the slowest axis were longer.
    """
    if order == "F":
        return _bracketed(_unravel(element, shape[::-1])[::-1])
    return _bracketed(_unravel(element, shape))


def _unravel(element: int, shape: Sequence[int]) -> list[int]:
    index = []
    for size in reversed(shape[1:]):
        element, place = divmod(element, max(size, 1))
        index.append(place)
    return [element, *reversed(index)]


def _bracketed(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


def last_index(shape: Sequence[int]) -> str:
    """``[79, 47]``: the largest index of an array of this shape."""
    return _bracketed([size - 1 for size in shape])


@dataclass(frozen=True)
class SharedArray:
    """One shared array of a program, which begins at byte ``start`` of a block's shared memory."""

    name: str  # "" if it has none in the source
    start: int
    size: int  # bytes
    shape: tuple[int, ...]  # () if unknown
    itemsize: int

    def place(self, byte: int, width: int) -> str:
        """The element that a byte belongs to: ``tile_b[10, 0]``, or ``tile_b[12]`` if shape is unknown."""
        name = self.name or "the shared array"
        item = self.itemsize or width
        element = (byte - self.start) // item
        if self.shape:
            return f"{name}{index_text(element, self.shape)}"
        return f"{name}[{element}]"


def shared_symbol(symbol: str, name: str, shape: Sequence[int], dtype: str) -> str:
    """The name of a PTX variable with the array's name, shape and dtype in it; ``symbol`` itself if the name
    would not be valid in PTX.
    """
    if not re.fullmatch(r"[a-z]+\d{0,3}", dtype) or not re.fullmatch(r"\w*", name, re.ASCII):
        return symbol
    return f"{symbol}${name[:40]}${'x'.join(map(str, shape))}${dtype}"


def shared_array(symbol: str, start: int, size: int) -> SharedArray:
    """The shared array that a PTX variable holds, by its name; ``size`` is 0 for dynamic shared memory."""
    found = SHARED_SYMBOL.fullmatch(symbol)
    if found:
        name, shape = found[1], tuple(int(n) for n in found[2].split("x"))
        try:
            item = np.dtype(found[3]).itemsize
        except TypeError:
            item = 0
        if not size or math.prod(shape) * item == size:
            return SharedArray(name, start, size, shape if item else (), item)
    local = STATIC_LOCAL.fullmatch(symbol)
    if local:
        return SharedArray(local[2][: int(local[1])], start, size, (), 0)
    unnamed = symbol.startswith(("_cudapy", "static_shared_memory"))  # by either compiler of numba
    return SharedArray("" if unnamed else symbol[:40], start, size, (), 0)


def array_at(arrays: Sequence[SharedArray], byte: int) -> SharedArray | None:
    """The shared array that a byte is in, or else after; None if the kernel has no shared array."""
    before = [array for array in arrays if array.start <= byte]
    return before[-1] if before else arrays[0] if arrays else None
