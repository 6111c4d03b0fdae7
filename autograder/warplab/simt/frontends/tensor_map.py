"""Tensor maps from Python: ``tensor_map(array, box)`` is the argument for a kernel's parameter
``const __grid_constant__ CUtensorMap``.

Its 128 bytes are made by the driver's cuTensorMapEncodeTiled on a GPU, and by ``engine.tensor_maps`` on the
engine. Maps that the driver refuses are refused here first, with a reason, as the driver says only
CUDA_ERROR_INVALID_VALUE.
"""

# pyright: reportAttributeAccessIssue=false
# cuda.bindings defines its names dynamically.

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from cuda.bindings import driver

from warplab.simt.engine.swizzle import PIECE, SPANS
from warplab.simt.engine.tensor_maps import LONGEST_BOX, MOST_DIMENSIONS, SIZE, Map
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.torch_hook import is_tensor
from warplab.simt.ptx.ptx_types import TYPES

#: dtype -> (PTX type, the driver's name); types that the driver lacks are passed as unsigned integers
_TYPES = {
    "float16": ("f16", "FLOAT16"),
    "bfloat16": ("bf16", "BFLOAT16"),
    "float32": ("f32", "FLOAT32"),
    "float64": ("f64", "FLOAT64"),
    **dict.fromkeys(("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"), ("u8", "UINT8")),
    **dict.fromkeys(("int16", "uint16"), ("u16", "UINT16")),
    "uint32": ("u32", "UINT32"),
    "int32": ("s32", "INT32"),
    "uint64": ("u64", "UINT64"),
    "int64": ("s64", "INT64"),
}
#: The bits of the NaN with which an H200 filled elements beyond an array's edges.
_NAN = {"f16": 0x7FF7, "bf16": 0x7FF7, "f32": 0x7FF77FF7, "f64": 0x7FF77FF77FF77FF7}
_FURTHEST = 1 << 40  # bytes

#: (map, address of its array) -> the 128 bytes
Encode = Callable[["TensorMap", int], bytes]


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument of a kernel: TMA copies boxes of ``array``; ``box`` is the number of elements along each
    dimension, of which the last is the innermost.
    """

    array: Any
    box: tuple[int, ...]
    swizzle: int
    fill: str

    @property
    def type(self) -> tuple[str, str]:
        """(PTX type of the elements, the driver's name for it). Raises InvalidLaunch for other types."""
        name = str(self.array.dtype).removeprefix("torch.")
        if name not in _TYPES:
            raise _refused(f"an array of {name}", f"one of {', '.join(_TYPES)}")
        return _TYPES[name]

    @property
    def itemsize(self) -> int:
        return TYPES[self.type[0]].bytes

    @property
    def strides(self) -> tuple[int, ...]:
        """The array's strides in bytes."""
        if is_tensor(self.array):
            return tuple(step * self.itemsize for step in self.array.stride())
        return tuple(self.array.strides)

    def check(self) -> None:
        """Raise InvalidLaunch for maps that cuTensorMapEncodeTiled refuses."""
        shape, box = tuple(self.array.shape), self.box
        dimensions = f"an array of {len(shape)} dimensions"
        if not 1 <= len(shape) <= MOST_DIMENSIONS:
            raise _refused(dimensions, f"1 to {MOST_DIMENSIONS}")
        if min(shape) < 1 or max(shape) > 1 << 32:
            raise _refused(f"an array of the shape {shape}", "1 to 2**32 elements along each dimension")
        if len(box) != len(shape):
            raise _refused(f"a box {box} for {dimensions}", "a length for each dimension")
        if not all(isinstance(n, Integral) for n in box) or min(box) < 1 or max(box) > LONGEST_BOX:
            raise _refused(f"a box {box}", f"1 to {LONGEST_BOX} elements along each dimension")
        inner = box[-1] * self.itemsize
        rows = f"a box whose rows have {inner} bytes"
        if inner % PIECE:
            raise _refused(rows, f"a multiple of {PIECE}: {PIECE // self.itemsize} elements")
        if np.prod(box) * self.itemsize >= 1 << 18:  # the limit of an H200's driver
            raise _refused(f"a box {box} of 256 KiB or more", "one that a block's shared memory has room for")
        *outer, step = self.strides
        if shape[-1] > 1 and step != self.itemsize:
            raise _refused(f"an array with a step of {step} bytes in its last dimension", "a contiguous copy")
        for stride in outer:
            if stride % PIECE or not 0 <= stride < _FURTHEST:
                raise _refused(
                    f"an array whose rows or planes begin {stride} bytes apart",
                    f"a multiple of {PIECE} bytes from 0 on: padded rows, or a copy of a reversed array",
                )
        if not isinstance(self.swizzle, Integral) or self.swizzle not in SPANS:
            raise _refused(f"a swizzle of {self.swizzle!r}", "0, 32, 64 or 128 bytes")
        if self.swizzle and inner > self.swizzle:
            raise _refused(f"{rows}, with a swizzle of {self.swizzle}", "rows at most as long as the swizzle")
        if self.fill not in ("zero", "nan"):
            raise _refused(f"fill={self.fill!r}", '"zero" or "nan"')
        if self.fill == "nan" and self.type[0] not in _NAN:
            raise _refused("a fill of NaN for whole numbers", 'fill="zero"')

    def encoded(self, address: int, encode: Encode, name: str, kernel: str) -> bytes:
        """The 128 bytes, for an array at ``address``. Raises InvalidLaunch if that is not aligned."""
        if address % PIECE:
            raise InvalidLaunch(
                f"argument {name}: the array of the tensor map begins at the address {address:#x}, and TMA "
                f"needs a multiple of {PIECE}",
                kernel=kernel,
                hint="a slice that begins at a multiple of 16 bytes, or a copy of it",
            )
        return encode(self, address)


def tensor_map(array, box: int | Sequence[int], swizzle: int = 0, fill: str = "zero") -> TensorMap:
    """The argument for a kernel's ``const __grid_constant__ CUtensorMap``: TMA copies boxes of ``array``.

    ``array``: a NumPy array, a device array or a torch tensor, contiguous in its last dimension. Host arrays
    are copied to a GPU and back, as if they were arguments themselves. ``box``: elements along each
    dimension, in the array's order; in a kernel, coordinates are in the reverse order, the last dimension
    first. ``swizzle``: 0, 32, 64 or 128 bytes. ``fill``: "zero" or "nan", for elements beyond the array's
    edges.

    Raises InvalidLaunch for maps that cuTensorMapEncodeTiled refuses. Strides between elements, interleaved
    layouts and im2col are not supported.
    """
    if not hasattr(array, "dtype"):
        raise _refused(f"a {type(array).__name__}", "an array of NumPy or a device, or a torch tensor")
    one = TensorMap(array, tuple(box) if np.iterable(box) else (box,), swizzle, fill)
    one.check()
    return one


def _refused(what: str, wanted: str) -> InvalidLaunch:
    return InvalidLaunch(f"a tensor map of {what}, which cuTensorMapEncodeTiled refuses", hint=wanted)


def on_engine(one: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map for the engine."""
    kind = one.type[0]
    fill = _NAN[kind] if one.fill == "nan" else 0
    strides = (*one.strides[:-1], one.itemsize)
    return Map(
        address, tuple(one.array.shape)[::-1], strides[::-1], one.box[::-1], kind, one.swizzle, fill
    ).encoded()


def on_cuda(one: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map for a GPU, made by its driver."""
    swizzle = f"SWIZZLE_{one.swizzle}B" if one.swizzle else "SWIZZLE_NONE"
    fill = "NAN_REQUEST_ZERO_FMA" if one.fill == "nan" else "NONE"
    outer = one.strides[-2::-1] if len(one.box) > 1 else [PIECE]  # not used for one dimension
    status, made = driver.cuTensorMapEncodeTiled(
        _named(driver.CUtensorMapDataType, f"DATA_TYPE_{one.type[1]}"),
        len(one.box),
        address,
        [driver.cuuint64_t(n) for n in tuple(one.array.shape)[::-1]],
        [driver.cuuint64_t(n) for n in outer],
        [driver.cuuint32_t(n) for n in one.box[::-1]],
        [driver.cuuint32_t(1)] * len(one.box),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        _named(driver.CUtensorMapSwizzle, swizzle),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        _named(driver.CUtensorMapFloatOOBfill, f"FLOAT_OOB_FILL_{fill}"),
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise InvalidLaunch(f"CUDA says {status.name} to a tensor map of a box {one.box}")
    return ctypes.string_at(made.getPtr(), SIZE)


def _named(kind, name: str):
    return getattr(kind, f"CU_TENSOR_MAP_{name}")
