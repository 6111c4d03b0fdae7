"""Reads and sets ``__constant__`` and ``__device__`` variables of CUDA C++ by name (cudaMemcpyToSymbol)."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warplab.simt.errors import InvalidLaunch
from warplab.simt.ptx.parser import Module, parse

#: Source to append to the author's. Its variable warplab_symbol describes the type of another variable: dtype
#: kind, bytes of an element, lanes of a vector type, number of dimensions, and their sizes.
_PROBE = """
namespace warplab_probe {{
template <class T> struct lanes {{ typedef T type; static const int n = 0; }};
{lanes}
template <class T> struct kind {{ static const int is = __is_enum(T) ? 'i' : 'V'; }};
template <class T> struct kind<T*> {{ static const int is = 'u'; }};
{kinds}
template <class T> struct shape {{ typedef T type; static const int rank = 0, a = 0, b = 0, c = 0, d = 0; }};
template <class T, unsigned long N> struct shape<T[N]> {{
    typedef typename shape<T>::type type;
    static const int rank = shape<T>::rank + 1, a = N, b = shape<T>::a, c = shape<T>::b, d = shape<T>::c; }};
template <class T> struct bare {{ typedef T type; }};
template <class T> struct bare<const T> {{ typedef T type; }};
template <class T> struct bare<volatile T> {{ typedef T type; }};
template <class T> struct bare<const volatile T> {{ typedef T type; }};
template <class T> struct of {{
    typedef shape<T> s;
    typedef typename bare<typename s::type>::type e; typedef typename lanes<e>::type t; }};
template <class T> struct plain;
template <class T> struct plain<T&> {{ typedef T type; }};
typedef of<plain<decltype(({name}))>::type> it;
}}
extern "C" __device__ int warplab_symbol[8] = {{
    warplab_probe::kind<warplab_probe::it::t>::is,
    sizeof(warplab_probe::it::t), warplab_probe::lanes<warplab_probe::it::e>::n,
    warplab_probe::it::s::rank, warplab_probe::it::s::a,
    warplab_probe::it::s::b, warplab_probe::it::s::c,
    warplab_probe::it::s::d }};
"""
_KINDS = {
    "b": ["bool"],
    "i": ["char", "signed char", "short", "int", "long", "long long"],
    "u": ["unsigned char", "unsigned short", "unsigned", "unsigned long", "unsigned long long"],
    "f": ["float", "double"],
}
_LANES = {"float": "float", "double": "double", "int": "int", "uint": "unsigned", "uchar": "unsigned char"}


def probe(name: str) -> str:
    """C++ to append to a source, whose variable ``warplab_symbol`` then describes the type of ``name``."""
    lanes = [
        f"template <> struct lanes<{vector}{n}> {{ typedef {one} type; static const int n = {n}; }};"
        for vector, one in _LANES.items()
        for n in ((2, 3, 4) if vector != "double" else (2,))
    ]
    kinds = [
        f"template <> struct kind<{one}> {{ static const int is = '{kind}'; }};"
        for kind, types in _KINDS.items()
        for one in types
    ]
    return _PROBE.format(name=name, lanes="\n".join(lanes), kinds="\n".join(kinds))


def probed(ptx: str) -> tuple[np.dtype, tuple[int, ...]]:
    """(dtype of an element, shape) of the probed variable, from the PTX of a source with a ``probe``."""
    data = next(v.data for v in parse(ptx).variables if v.name == "warplab_symbol") or b""
    kind, size, lanes, rank, *extents = np.frombuffer(data, np.int32).tolist()
    return np.dtype(f"{chr(kind)}{size}"), (*extents[:rank], *((lanes,) if lanes else ()))


def mangled(name: str, module: Module) -> str | None:
    """The name in PTX of the C++ variable ``name`` (such as ``ns::mask``); None if there is none."""
    parts = name.split("::")
    end = "".join(f"{len(part)}{part}" for part in parts)
    own = re.compile(rf"{re.escape(name)}|_ZN?(\d+_INTERNAL_\w+?)?{re.escape(end)}E?")
    found = [v.name for v in module.variables if v.space in ("global", "const") and own.fullmatch(v.name)]
    return found[0] if found else None


@dataclass(frozen=True)
class Symbol:
    """A variable of a kernel's source on the device: its C++ ``name``, ``dtype`` and ``shape``.

    The dtype of a struct is raw bytes (such as ``V24``): ``set`` takes a record array of that size, and
    ``get().view(record_dtype)`` reads one.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    _read: Callable[[], bytes]
    _write: Callable[[bytes], None]

    def get(self) -> np.ndarray:
        """A copy of the variable's value."""
        return np.frombuffer(bytearray(self._read()), self.dtype).reshape(self.shape)

    def set(self, value) -> None:
        """Set the variable; kernels of the same source see the value from the next launch on.

        Raises InvalidLaunch if the shape or dtype of ``value`` is not the variable's, or an integer variable
        cannot hold it.
        """
        pointer = getattr(value, "device_ctypes_pointer", None)  # the address of a device array
        array = np.asarray(value if pointer is None else np.uint64(pointer.value or 0))
        if self.dtype.kind == "V":
            if array.nbytes != self.dtype.itemsize * int(np.prod(self.shape, dtype=int)):
                raise InvalidLaunch(
                    f"{self.name} has {self.dtype.itemsize} bytes an element and shape {self.shape}, "
                    f"and the value has {array.nbytes} bytes"
                )
            self._write(array.tobytes())
            return
        if array.shape != self.shape:
            raise InvalidLaunch(f"{self.name} has shape {self.shape}, and the value has shape {array.shape}")
        if isinstance(value, np.ndarray | np.generic) and array.dtype != self.dtype:
            raise InvalidLaunch(
                f"{self.name} is {self.dtype}, and the value is {array.dtype}",
                hint=f"value.astype(np.{self.dtype})",
            )
        with np.errstate(over="ignore"):
            there = array.astype(self.dtype)
        if array.dtype.kind in "iuf" and self.dtype.kind in "iu" and not np.array_equal(there, array):
            raise InvalidLaunch(f"{self.name} is {self.dtype}, which does not hold {value}")
        self._write(there.tobytes())


@functools.cache
def parameter_types(entry: str) -> list[str]:
    """The C++ types of a kernel's parameters, from its mangled name: ["float const*", "int"].

    Empty for an ``extern "C"`` kernel, whose name has no types, and without libstdc++, which demangles.
    """
    try:
        read = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return []
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    status = ctypes.c_int()
    made = read(entry.encode(), None, None, ctypes.byref(status))
    if not made:
        return []
    try:
        text = ctypes.string_at(made).decode(errors="replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(made)
    out, depth = [""], 0
    for character in text[_parameters_start(text) : -1]:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            out.append("")
        else:
            out[-1] += character
    return [one.strip() for one in out]


def _parameters_start(text: str) -> int:
    """The index after the opening bracket of the parameters in a C++ signature, which ends with ")"."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at + 1
    return len(text)
