"""The table of PTX types: size in bytes, the NumPy dtype of a register, and the dtype to compute in.

A type that packs several values in one register has their number as its ``count``. NumPy has no dtype for
some floats (bf16, tf32, FP8): ``engine.fp16``, ``engine.fp8`` and ``engine.tensor`` convert them to float32
or float64 and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PTXType:
    """One type: ``bytes`` of all its values, of which there are ``count``.

    ``register`` is the dtype that a register of this type has between basic blocks (None: registers cannot
    be declared with it), ``value`` the dtype in which one value is computed ("": NumPy has none).
    """

    bytes: int
    register: str | None
    value: str
    count: int
    is_float: bool

    @property
    def bits(self) -> str:
        """The bit patterns of all values, as an unsigned dtype."""
        return f"u{self.bytes}"

    @property
    def is_word(self) -> bool:
        """Whether it is one value that NumPy knows."""
        return self.count == 1 and self.value != ""


def _integer(bytes_: int, kind: str) -> PTXType:
    return PTXType(bytes=bytes_, register=f"u{bytes_}", value=f"{kind}{bytes_}", count=1, is_float=False)


def _float(bytes_: int, register: str | None, value: str, *, count: int = 1) -> PTXType:
    return PTXType(bytes=bytes_, register=register, value=value, count=count, is_float=True)


def _pair(value: str) -> PTXType:
    return PTXType(bytes=4, register=None, value=value, count=2, is_float=False)


TYPES = {
    "pred": PTXType(bytes=1, register="?", value="?", count=1, is_float=False),
    **{f"{kind}{8 * n}": _integer(n, "u") for n in (1, 2, 4, 8) for kind in "bu"},
    **{f"s{8 * n}": _integer(n, "i") for n in (1, 2, 4, 8)},
    "b128": PTXType(bytes=16, register=None, value="", count=1, is_float=False),
    "s16x2": _pair("i2"),
    "u16x2": _pair("u2"),
    "f16": _float(2, "u2", "f2"),
    "bf16": _float(2, "u2", ""),
    "f16x2": _float(4, "u4", "f2", count=2),
    "bf16x2": _float(4, "u4", "", count=2),
    "tf32": _float(4, None, ""),
    "f32": _float(4, "f4", "f4"),
    "f64": _float(8, "f8", "f8"),
    "e4m3x2": _float(2, None, "", count=2),
    "e5m2x2": _float(2, None, "", count=2),
}
INTEGERS = frozenset(name for name in TYPES if name[0] in "bsu" and TYPES[name].is_word)
PREDICATES = frozenset({"pred"})
FLOATS = frozenset({"f32", "f64"})
HALVES = frozenset({"f16", "bf16", "f16x2", "bf16x2"})
PAIRS = frozenset({"s16x2", "u16x2"})
FP8 = frozenset({"e4m3x2", "e5m2x2"})
WORDS = frozenset(name for name in TYPES if TYPES[name].is_word)


def types_named(mods: Sequence[str]) -> list[str]:
    """The types among an instruction's modifiers, in order; of several, the first is the result's."""
    return [mod for mod in mods if mod in TYPES]


def last_type(mods: Sequence[str]) -> str:
    """The last type among an instruction's modifiers, which is that of its operands; "" if there is none."""
    return next((mod for mod in reversed(mods) if mod in TYPES), "")


def dtype_of(mods: Sequence[str]) -> str:
    """The dtype that an instruction computes in, that of its last type, which must have one in NumPy."""
    value = TYPES[last_type(mods)].value
    assert value, "asked for of types that have one"
    return value


def unsigned(dtype: str) -> str:
    """The unsigned dtype as wide as an integer's; other dtypes as they are."""
    return f"u{dtype[1:]}" if dtype[0] in "iu" else dtype
