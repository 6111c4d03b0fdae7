"""The handler of ``cvt``, conversions between types."""

from __future__ import annotations

import numpy as np

from warplab.simt.engine import fp8, fp16, tensor
from warplab.simt.engine.arithmetic import finished, flushed
from warplab.simt.ptx.ptx_types import FP8, HALVES, TYPES, PTXType, types_named

ROUNDINGS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna")
OPENED = HALVES - {"f16"}  # NumPy knows f16 itself


def cvt(code, instr):
    """``cvt``; the module of the conversion depends on its two types."""
    named = set(types_named(instr.mods))
    if "tf32" in named:
        tensor.convert(code, instr)
    elif named & FP8:
        fp8.convert(code, instr)
    elif named & OPENED:
        fp16.convert(code, instr)
    else:
        _convert_words(code, instr)


def _convert_words(code, instr):
    """Between integers, f16, f32 and f64."""
    types = [TYPES[name] for name in types_named(instr.mods)]
    if len(types) != 2 or not all(kind.is_word for kind in types):
        raise code.unsupported(instr, "type")
    to, source = types
    rounding = next((m for m in instr.mods if m in ROUNDINGS), None)
    d, a = instr.operands
    x = code.use(a, source.value)
    if source.is_float and to.is_float:
        x = fp16.limited(instr, _flushed(instr, x, source), types_named(instr.mods)[0])
        x = _rounded("numeric.float_to_float", x, to.value, rounding)
        code.define(d, _finished(instr, x, to), to.value)
    elif source.is_float:
        x = _flushed(instr, x, source)
        code.define(d, f"numeric.float_to_int({x}, '{to.value}', {rounding!r})", to.value)
    elif to.is_float:
        code.define(d, _finished(instr, _rounded("rounding.integer", x, to.value, rounding), to), to.value)
    elif "sat" in instr.mods:
        target, given = np.iinfo(to.value), np.iinfo(source.value)
        low, high = max(target.min, given.min), min(target.max, given.max)
        code.define(d, f"np.clip({x}, {low}, {high}).astype('{to.value}')", to.value)
    else:
        code.define(d, f"{x}.astype('{to.value}')", to.value)


def _flushed(instr, x: str, kind: PTXType) -> str:
    """The expression of an operand; ``.ftz`` flushes only f32."""
    return flushed(instr, x) if kind.value == "f4" else x


def _finished(instr, x: str, kind: PTXType) -> str:
    """The expression of a result, saturated, and flushed if it is f32."""
    if kind.value != "f4":
        return f"numeric.saturate({x})" if "sat" in instr.mods else x
    return finished(instr, x)


def _rounded(function: str, x: str, dtype: str, rounding: str | None) -> str:
    """The expression of a conversion: NumPy rounds to nearest, ``function`` in other ways."""
    if rounding in (None, "rn"):
        return f"{x}.astype('{dtype}')"
    return f"{function}({x}, '{dtype}', {rounding!r})"
