"""How Python values become a kernel's parameters, in the conventions of numba-cuda, its successor and C.

The engine takes parameters as bytes; cuda.core takes 64-bit words as ints, and other sizes as NumPy scalars.

numba passes an array as a struct of 64-bit words, one of which is its pointer; numba-cuda-mlir passes it as
MLIR's descriptor of an array ("memref"), also in 64-bit words. Both pass a number in the number's own type.
C passes an array as its pointer, and a number in the type that the kernel declares.
"""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from warplab.simt.errors import InvalidLaunch
from warplab.simt.ptx.ptx_types import TYPES

#: PTX types that a number can have in C's convention, and their dtypes.
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
    """The words of numba's struct for an array at ``pointer``.

    They are (meminfo, parent, size, itemsize, data, shape..., strides...), with strides in bytes. meminfo and
    parent are 0: the kernel does not own the memory.
    """
    size = math.prod(array.shape)
    return (0, 0, size, array.dtype.itemsize, pointer, *array.shape, *array.strides)


def memref(pointer: int, array) -> tuple[int, ...]:
    """The words of MLIR's descriptor of an array: the pointer twice, an offset, shape, strides in elements.

    An element of an array of records or strings counts as its bytes.
    """
    # np.flexible: records and strings, but not bfloat16, whose dtype has the kind of a record
    width = 1 if issubclass(array.dtype.type, np.flexible) else array.dtype.itemsize
    return (pointer, pointer, 0, *array.shape, *(step // width for step in array.strides))


def numba_array_words(pointer: int, array) -> list[bytes]:
    """``numba_array`` as 8 bytes a word, as the engine takes it."""
    layout = _words_of_layout(array.shape, array.strides, array.dtype.itemsize)
    return [*layout[:4], word(pointer), *layout[4:]]


@functools.lru_cache(maxsize=1024)  # a program often launches with arrays of one layout
def _words_of_layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[bytes, ...]:
    return tuple(map(word, (0, 0, math.prod(shape), itemsize, *shape, *strides)))


def numba_number(dtype: str, value) -> np.generic:
    """A number of numba's convention: its own type."""
    return np.dtype(dtype).type(value)


def c_number(kind: str, value, name: str, kernel: str) -> np.generic:
    """A number of C's convention, as the PTX type ``kind`` (one of NUMBERS) that the kernel declares.

    Raises InvalidLaunch where the value does not fit that type.
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
