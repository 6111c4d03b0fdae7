"""Kernel arguments in C's convention: arrays as pointers, numbers in declared types, records as structs."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import re
import typing
from collections.abc import Callable

import numpy as np

from warplab.simt.abi import NUMBERS, c_number, word
from warplab.simt.engine.tensor_maps import ALIGNED, SIZE
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.arguments import describe
from warplab.simt.frontends.tensor_map import Encode, TensorMap, on_engine
from warplab.simt.frontends.torch_hook import OF_ML_DTYPES, is_tensor
from warplab.simt.ptx.parser import Param

#: place(name, value) -> the address at which the kernel finds a host array or a torch tensor.
Place = Callable[[str, object], int]

#: Floating-point types of CUDA C++ -> dtypes with the same representation.
_FLOATING = {
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3fn",
    "__nv_fp8_e5m2": "float8_e5m2",
    "__nv_fp8_e8m0": "float8_e8m0fnu",
}
_DTYPES = {*_FLOATING.values(), *OF_ML_DTYPES}


def parameters(
    declared: list[Param],
    args,
    place: Place,
    kernel: str,
    types: list[str] | None = None,
    encode: Encode = on_engine,
) -> list[bytes]:
    """The bytes of each parameter that the PTX declares.

    ``types``: the parameters' C++ types, if the mangled name has them (``symbols.parameter_types``).
    ``encode`` makes tensor maps. Raises InvalidLaunch for a wrong number of arguments, or a wrong type or
    size.
    """
    if len(declared) != len(args):
        raise InvalidLaunch(f"the kernel takes {len(declared)} arguments and got {len(args)}", kernel=kernel)
    for number, (wanted, value) in enumerate(zip(types or (), args), 1):
        _same_floats(wanted, value, f"number {number}", kernel)
    return [
        _one(param, value, f"number {number}", place, kernel, encode)
        for number, (param, value) in enumerate(zip(declared, args, strict=True), 1)
    ]


def _one(param: Param, value, name: str, place: Place, kernel: str, encode: Encode) -> bytes:
    if isinstance(value, TensorMap):
        address = _address(value.array, name, place, kernel) or 0
        data, align = value.encoded(address, encode, name, kernel), ALIGNED
        if param.size == 8:  # a pointer to one
            return word(place(name, np.frombuffer(data, np.uint8).copy()))
        return _fitting(param, data, align, "", name, kernel)
    address = _address(value, name, place, kernel)
    if address is not None:
        return _fitting(param, word(address), 8, " (the address of an array)", name, kernel)
    if param.type in NUMBERS and isinstance(value, bool | int | float | np.number | np.bool_):
        return c_number(param.type, value, name, kernel).tobytes()
    note = " (made with align=True, fields lie as in C)" if isinstance(value, np.void) else ""
    return _fitting(param, *record(value, name, place, kernel), note, name, kernel)


def _fitting(param: Param, data: bytes, align: int, note: str, name: str, kernel: str) -> bytes:
    """A parameter's bytes; raises InvalidLaunch if size or alignment are not those of the kernel's."""
    if len(data) != param.size:
        raise InvalidLaunch(
            f"argument {name} has {len(data)} bytes{note}, and the kernel wants {param.size}",
            kernel=kernel,
            hint="warplab.tensor_map(array, box), if that is a CUtensorMap" if param.size == SIZE else "",
        )
    if align > param.align:
        raise InvalidLaunch(
            f"argument {name} has a field of {align} bytes, and none in the kernel's struct is wider than "
            f"{param.align}",
            kernel=kernel,
            hint="the types of its fields, in the order of the struct",
        )
    return data


def _same_floats(wanted: str, value, name: str, kernel: str) -> None:
    """Refuse an array of one floating-point type for a pointer to another. An array of integers is accepted
    as raw bits for any pointer.
    """
    pointee, given = _pointee(wanted), _dtype_name(getattr(value, "dtype", ""))
    if pointee in _FLOATING and given in _DTYPES and given != _FLOATING[pointee]:
        shape = ", ".join(map(str, value.shape))
        fits = next((f", or a kernel of {c}*" for c, name in _FLOATING.items() if name == given), "")
        raise InvalidLaunch(
            f"argument {name} is {given}[{shape}], and the kernel reads {pointee}: the same bytes would be "
            "other numbers",
            kernel=kernel,
            hint=f"an array of {_FLOATING[pointee]}{fits}",
        )


@functools.lru_cache
def _pointee(wanted: str) -> str:
    """The type that a C++ pointer type points to, such as "float"; "" for other types."""
    return re.sub(r"\b(const|volatile|__restrict__)\b|[\s*]", "", wanted) if wanted.endswith("*") else ""


@functools.lru_cache
def _dtype_name(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _address(value, name: str, place: Place, kernel: str) -> int | None:
    """The address of an array on the host or the device, or of a torch tensor; None for anything else."""
    if is_tensor(value):  # a view with any strides: C++ sees its first element, as on CUDA
        return place(name, value)
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
        if not array.flags.c_contiguous:
            raise InvalidLaunch(
                f"{describe(name, array)} is not contiguous in C order",
                kernel=kernel,
                hint="np.ascontiguousarray(array)",
            )
        return place(name, array)
    if getattr(value, "__cuda_ndarray__", False):
        return value.device_ctypes_pointer.value or 0
    found = getattr(value, "__cuda_array_interface__", None)
    return None if found is None else int(found["data"][0])


def record(value, name: str, place: Place, kernel: str) -> tuple[bytes, int]:
    """(bytes, alignment) of a struct by value: a NumPy record or number, a ctypes.Structure or a dataclass.

    The C types of a dataclass are its annotations (np.float32, np.int32, another dataclass); an array in a
    field is a pointer in the struct. Raises InvalidLaunch for a field without a C type, and other objects.
    """
    if isinstance(value, np.generic):
        packed = value.dtype.names is not None and not value.dtype.isalignedstruct
        return value.tobytes(), 1 if packed else value.dtype.alignment
    if isinstance(value, ctypes.Structure | ctypes.Union):
        return bytes(value), ctypes.alignment(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        one = _of_dataclass(value, name, place, kernel)
        return one.tobytes(), one.dtype.alignment
    raise InvalidLaunch(
        f"argument {name} is a {type(value).__name__}; pass arrays, numbers and structs"
        + (", and 0 for a null pointer" if value is None else ""),
        kernel=kernel,
    )


def _of_dataclass(value, name: str, place: Place, kernel: str) -> np.void:
    """A record with the dataclass's fields, in the layout of a C struct."""
    types = typing.get_type_hints(type(value))
    fields, contents = [], []
    for field in dataclasses.fields(value):
        at, content, wanted = f"{name}.{field.name}", getattr(value, field.name), types[field.name]
        address = _address(content, at, place, kernel)
        if address is not None:
            content, dtype = address, np.dtype(np.uint64)
        elif dataclasses.is_dataclass(content):
            content = _of_dataclass(content, at, place, kernel)
            dtype = content.dtype
        else:
            dtype = _c_type(wanted, content)
            if dtype is None:
                said = getattr(wanted, "__name__", wanted)
                raise InvalidLaunch(
                    f"argument {at} has no C type: it is annotated as {said}",
                    kernel=kernel,
                    hint=f"{field.name}: np.float32, np.int32, ... as the struct has it",
                )
        fields.append((field.name, dtype))
        contents.append(content)
    out = np.zeros(1, np.dtype(fields, align=True))
    out[0] = tuple(contents)
    return out[0]


def _c_type(wanted, content) -> np.dtype | None:
    """The dtype of a field's value or annotation; None for Python's int and float, which are not C types."""
    if isinstance(content, np.generic):
        return content.dtype
    if isinstance(wanted, np.dtype):
        return wanted
    if not isinstance(wanted, type) or wanted in (int, float):
        return None
    dtype = np.dtype(wanted)  # "object" for a class that is not a number type
    return dtype if dtype.kind in "biufc" else None
