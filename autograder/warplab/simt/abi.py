"""How Python values become a kernel's parameters, in the conventions of numba-cuda, its successor and C.

The engine takes them as bytes, cuda.core as ints of 64 bits and NumPy scalars of other sizes.

numba's passes an array as a struct of words of 64 bits, its pointer among them, and a number as its own type.
numba-cuda-mlir's passes an array as MLIR's description of it ("memref"), in words too, and a number likewise.
C's passes an array as its pointer, and a number as the type that the kernel declares.
"""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from warplab.simt.errors import InvalidLaunch
from warplab.simt.ptx.ptx_types import TYPES

#: What PTX calls the type of a number among C's parameters, and its dtype.
NUMBERS = {
    kind: np.dtype(TYPES[kind].value)
    for kind in ("f32", "f64", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
}


def word(value) -> bytes:
    """A whole number or an address as 64 bits."""
    return struct.pack("<q", int(value))


def integer(value: int, bits: int) -> bytes:
    """The lowest ``bits`` of a whole number."""
    return (value & ((1 << bits) - 1)).to_bytes(bits // 8, "little")


def numba_array(pointer: int, array) -> tuple[int, ...]:
    """The words of numba's struct of an array at ``pointer``.

    These are (meminfo, parent, size, itemsize, data, shape..., strides...).
    ``array`` has a shape, a dtype and strides in bytes. meminfo and parent are 0: the kernel does not own the
    memory.
    """
    size = math.prod(array.shape)
    return (0, 0, size, array.dtype.itemsize, pointer, *array.shape, *array.strides)


def memref(pointer: int, array) -> tuple[int, ...]:
    """The words of MLIR's description of an array: the pointer twice, an offset, shape, strides in elements.

    Of records and strings the elements are bytes.
    """
    width = 1 if issubclass(array.dtype.type, np.flexible) else array.dtype.itemsize  # not of bfloat16
    return (pointer, pointer, 0, *array.shape, *(step // width for step in array.strides))


def numba_array_words(pointer: int, array) -> list[bytes]:
    """The same as bytes, a word each: what a launch passes."""
    layout = _words_of_layout(array.shape, array.strides, array.dtype.itemsize)
    return [*layout[:4], word(pointer), *layout[4:]]


@functools.lru_cache(maxsize=1024)  # a program launches often what lies in memory alike
def _words_of_layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[bytes, ...]:
    return tuple(map(word, (0, 0, math.prod(shape), itemsize, *shape, *strides)))


def numba_number(dtype: str, value) -> np.generic:
    """A number of numba's convention: its own type."""
    return np.dtype(dtype).type(value)


def c_number(kind: str, value, name: str, kernel: str) -> np.generic:
    """A number of C's convention, as the PTX type ``kind`` (one of NUMBERS) that the kernel declares.

    Raises InvalidLaunch where it does not fit.
    """
    dtype = NUMBERS[kind]
    if dtype.kind == "f":
        data = struct.pack(f"<{dtype.char}", float(value))
        return np.frombuffer(data, dtype)[0]
    if float(value) != int(value):
        raise InvalidLaunch(f"argument {name} is {value}, and the kernel wants a whole number", kernel=kernel)
    bits = 8 * dtype.itemsize
    if not -(1 << (bits - 1)) <= int(value) < 1 << bits:
        raise InvalidLaunch(f"argument {name} is {value}, which does not fit {bits} bits", kernel=kernel)
    return np.frombuffer(integer(int(value), bits), dtype)[0]
