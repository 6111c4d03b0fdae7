"""Kernel arguments in numba's convention: each Python value becomes one or more parameters (``simt.abi``)."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda import types

from warplab.simt.abi import integer, numba_array_words, numba_number, word
from warplab.simt.engine.address_space import AddressSpace, Region, as_bytes
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.torch_hook import array_of, is_tensor, memory_of

HINTS = (cuda.In, cuda.Out)  # cuda.InOut is a subclass of Out


def flatten(names, argument_types, values, space: AddressSpace, extensions=()):
    """(parameters in order, regions mapped for host values, functions to call after the launch).

    The caller unmaps the regions after the launch. ``extensions`` are numba's: each may replace a type and a
    value, and add a function to call after the launch.
    """
    out: list[bytes] = []
    regions: list[Region] = []
    after: list = []
    for name, ty, value in zip(names, argument_types, values):
        for extension in reversed(extensions):
            ty, value = extension.prepare_args(ty, value, stream=0, retr=after)
        _one(name, ty, value, space, out, regions, after)
    return out, regions, after


def check_signature(kernel: str, names, declared, values, typeof) -> None:
    """Raise InvalidLaunch if arrays and numbers do not have the types of the kernel's only signature.

    numba does not check this: it would read an array's bytes by the type and the layout in the signature.
    ``typeof(value)`` returns numba's type of a value.
    """
    if len(declared) != len(values):
        raise InvalidLaunch(f"{len(values)} arguments for a kernel that takes {len(declared)}", kernel=kernel)
    for name, ours, value in zip(names, declared, values, strict=False):
        if not isinstance(ours, types.Array | types.Number | types.Boolean):
            continue
        theirs, instead = typeof(value.value if isinstance(value, HINTS) else value), []
        if isinstance(ours, types.Array) and isinstance(theirs, types.Array):
            if _kind(ours.dtype) != _kind(theirs.dtype):
                instead.append(f"{name}.astype(np.{ours.dtype})")
            elif ours.layout not in ("A", theirs.layout) and (ours.ndim > 1 or theirs.layout == "A"):
                instead.append(f"np.ascontiguousarray({name})")
            fits = ours.ndim == theirs.ndim and not instead
        else:
            fits = isinstance(ours, types.Array) == isinstance(theirs, types.Array)
        if not fits:
            instead.append("leave the signature out: numba then compiles for the types of the arguments")
            raise InvalidLaunch(
                f"argument '{name}' is {theirs}, and the kernel's signature says {ours}",
                kernel=kernel,
                hint="; or ".join(instead),
            )


def _kind(ty):
    """A key that is equal for element types with the same representation, signed and unsigned alike."""
    whole = isinstance(ty, types.Integer | types.Boolean)
    return ("whole", getattr(ty, "bitwidth", 8)) if whole else ty


def host_array(value, name: str = "") -> np.ndarray | None:
    """A NumPy view of a host array or a CPU tensor of torch; None for anything else.

    Raises InvalidLaunch for a tensor that kernels do not take (``torch_hook.refuse``).
    """
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # a base-class view, also of numba's mapped and pinned arrays
    return array_of(value, name) if is_tensor(value) else None


def mapped(name: str, value, space: AddressSpace) -> tuple[Region, int]:
    """(region on which a host array or CPU tensor is mapped while a kernel runs, its address)."""
    array = host_array(value, name)
    assert array is not None
    memory, start = memory_of(value) if is_tensor(value) else (as_bytes(array), 0)
    region = space.add(memory, "", writable=array.flags.writeable).holds(array, describe(name, array))
    region.start = start
    return region, region.base + start


def on_device(name: str, value, space: AddressSpace):
    """(numba's device array, address, region) of a library's device array. The region gets the argument's
    name; it is None for an empty array.
    """
    address = getattr(value, "device_ctypes_pointer", None)
    if address is None:
        value = cuda.as_cuda_array(value)
        address = value.device_ctypes_pointer
    pointer = int(address.value or 0)
    region = space.find(pointer)
    if region is not None:
        region.holds(value, describe(name, value))
        if pointer != region.base:  # of a slice, which begins elsewhere
            region.shape = ()
    return value, pointer, region


def describe(name: str, array) -> str:
    return _described(name, array.dtype, array.shape)


@functools.lru_cache(maxsize=1024)  # NumPy needs ten microseconds for a dtype's name
def _described(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"argument '{name}' ({dtype}[{', '.join(map(str, shape))}])"


def _array(name, value, space, out, regions):
    region, known = getattr(value, "_warplab_words", (None, None))  # of a device array launched before
    if region is not None and known is not None and known[0] == name and region.words is known:
        out += known[1]
        return
    array = host_array(value, name)
    if array is not None:
        if not is_tensor(value) and not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise InvalidLaunch(
                f"{describe(name, array)} is not contiguous, and CUDA copies only contiguous host arrays",
                hint="pass np.ascontiguousarray(array), or a slice of a device array (cuda.to_device)",
            )
        region, pointer = mapped(name, value, space)
        regions.append(region)
    else:
        array, pointer, region = on_device(name, value, space)
        if region is not None:
            region.words = name, numba_array_words(pointer, array)
            array._warplab_words = region, region.words
    out += numba_array_words(pointer, array)


def record(name, value, space, out, regions, after):
    """Append the parameter of a record, which is a pointer. A host record is copied to a new region, and back
    into ``value`` by a function that is appended to ``after``.
    """
    if hasattr(value, "device_ctypes_pointer"):
        out.append(word(value.device_ctypes_pointer.value or 0))
        return
    data = np.frombuffer(bytearray(value.tobytes()), np.uint8)
    region = space.add(data, f"argument '{name}' (record of {data.size} bytes)")
    regions.append(region)
    out.append(word(region.base))

    def write_back():
        new = data.view(value.dtype)[0]
        if isinstance(value, np.ndarray):
            value[()] = new
            return
        for field in value.dtype.names or ():
            value[field] = new[field]

    after.append(write_back)


def _hinted(hint) -> Any:
    """The value to pass for ``cuda.In(value)``, ``Out`` or ``InOut``: for ``In`` a copy, because what the
    kernel writes to it must not reach the host.
    """
    if isinstance(hint, cuda.In) and isinstance(hint.value, np.ndarray | np.void):
        return hint.value.copy()
    return hint.value


def _one(name, ty, value, space, out, regions, after):
    if isinstance(value, HINTS):
        value = _hinted(value)
    if isinstance(ty, types.Array):
        _array(name, value, space, out, regions)
    elif isinstance(ty, types.Boolean):
        out.append(numba_number("bool", value).tobytes())
    elif isinstance(ty, types.Integer):
        out.append(integer(operator.index(value), ty.bitwidth))
    elif isinstance(ty, types.Float):
        out.append(numba_number(str(ty), value).tobytes())
    elif isinstance(ty, types.Complex):
        part = "float32" if ty.bitwidth == 64 else "float64"
        out.extend(numba_number(part, value).tobytes() for value in (value.real, value.imag))
    elif isinstance(ty, types.BaseTuple):
        for i, (t, v) in enumerate(zip(ty, value)):
            _one(f"{name}[{i}]", t, v, space, out, regions, after)
    elif isinstance(ty, types.Record):
        record(name, value, space, out, regions, after)
    elif isinstance(ty, types.NPDatetime | types.NPTimedelta):
        out.append(word(np.asarray(value).astype(np.int64)))
    elif isinstance(ty, types.CPointer):
        out.append(word(getattr(value, "value", value) or 0))
    elif isinstance(ty, types.EnumMember):
        _one(name, ty.dtype, value.value, space, out, regions, after)
    else:
        raise InvalidLaunch(
            f"argument '{name}' has type {ty}, which a kernel does not take",
            hint="pass arrays, numbers, records, enum members and tuples of them",
        )
