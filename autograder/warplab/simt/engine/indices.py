"""From a byte of memory to what a student calls it: ``tile[3, 16]``, not byte 260 of shared memory.

The names and shapes of shared arrays travel in the names of their PTX variables (``shared_symbol``), so that
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
    """``[3, 16]``: the index of an element, counted in memory, of an array of this shape.

    An element past either end has the index at which the array would have it if its slowest axis went on.
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
    """One shared array of a program: where it begins in a block's shared memory, and what it is."""

    name: str  # "" where nobody gave it one
    start: int
    size: int  # bytes
    shape: tuple[int, ...]  # () where it is not known
    itemsize: int

    def place(self, byte: int, width: int) -> str:
        """``tile_b[10, 0]``, or ``element 12 of tile_b`` where the shape is not known."""
        name = self.name or "the shared array"
        item = self.itemsize or width
        element = (byte - self.start) // item
        if self.shape:
            return f"{name}{index_text(element, self.shape)}"
        return f"{name}[{element}]"


def shared_symbol(symbol: str, name: str, shape: Sequence[int], dtype: str) -> str:
    """The name of a PTX variable that says which array it holds; `symbol` where PTX has no such name."""
    if not re.fullmatch(r"[a-z]+\d{0,3}", dtype) or not re.fullmatch(r"\w*", name, re.ASCII):
        return symbol
    return f"{symbol}${name[:40]}${'x'.join(map(str, shape))}${dtype}"


def shared_array(symbol: str, start: int, size: int) -> SharedArray:
    """What the name of a shared variable says of it; size 0: dynamic shared memory."""
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
    """The shared array in which a byte lies, or behind which it lies; None where a kernel has none."""
    before = [array for array in arrays if array.start <= byte]
    return before[-1] if before else arrays[0] if arrays else None
