"""f16, bf16 and packed pairs of them: converted to float32, computed there, and rounded once to 16 bits.

For add, sub, mul, min and max, one float32 operation and one rounding give the correctly rounded 16-bit
result, as float32 has more than twice the bits; fma is computed in float64.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.arithmetic import direction_of, extremum
from warplab.simt.engine.numeric import float_to_float
from warplab.simt.ptx.ptx_types import HALVES, TYPES, last_type, types_named

U2, U4, F2, F4, F8 = (np.dtype(d) for d in ("u2", "u4", "f2", "f4", "f8"))


def open_(bits, kind: str):
    """16-bit patterns as float32: shape (lanes,), or (lanes, 2) for a packed pair, the low half first."""
    if kind.endswith("x2"):
        bits = np.ascontiguousarray(bits).view(U2).reshape(-1, 2)
    if kind.startswith("bf16"):
        return (bits.astype(U4) << np.uint32(16)).view(F4)
    return bits.view(F2).astype(F4)


def to_odd(values):
    """float64 rounded to odd in float32: truncated, with the last bit set if that was inexact, so that a
    second rounding to fewer bits gives the same as a single one. NaN, infinity and float32 stay as they are.
    """
    if values.dtype == F4:
        return values
    near = values.astype(F4)
    cut = np.where(np.abs(near) > np.abs(values), np.nextafter(near, F4.type(0)), near)
    odd = (cut.view(U4) | (cut != values)).view(F4)
    return np.where(np.isfinite(values), odd, near)


def close(values, kind: str, rounding: str = "rn"):
    """The bit patterns of floats, rounded to nearest even (``rn``), towards zero (``rz``), up (``rp``) or
    down (``rm``).
    """
    if kind.startswith("bf16"):
        bits = np.ascontiguousarray(to_odd(values)).view(U4)
        if rounding == "rn":
            bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        elif rounding != "rz":  # truncated, and one step away from zero if that is the direction
            away = (bits & np.uint32(0xFFFF)).astype(bool) & (
                (values > 0) if rounding == "rp" else (values < 0)
            )
            bits = bits + np.where(away, np.uint32(0x10000), np.uint32(0))
        out = np.where(np.isnan(values), np.uint32(0x7FFF), bits >> np.uint32(16)).astype(U2)
    else:
        out = float_to_float(values, F2, rounding).view(U2)
    return np.ascontiguousarray(out).view(U4).reshape(-1) if kind.endswith("x2") else out


def pack(high, low, kind: str, rounding: str = "rn"):
    """A packed pair of two float32, in PTX's order: the high half first."""
    high, low = np.broadcast_arrays(high, low)
    return close(np.stack([low, high], axis=1), kind, rounding)


def relu(x):
    """``.relu``: negative values and -0 become +0, NaN stays."""
    return np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))


WHOLE = {"rni": "np.rint", "rzi": "np.trunc", "rmi": "np.floor", "rpi": "np.ceil"}


def arithmetic(template: str):
    """The handler of an instruction on f16, bf16 or pairs; ``{0}``, ``{1}`` ... are its float32 sources."""
    return _in_float32(lambda instr, *sources: template.format(*sources))


def smaller_or_larger(name: str):
    """The handler of ``min`` ("least") or ``max`` ("greatest")."""
    return _in_float32(lambda instr, a, b: extremum(name, instr, a, b))


def _in_float32(combine):
    """The handler of an instruction; ``combine`` makes its expression from those of its float32 sources."""

    def handler(code, instr):
        if "oob" in instr.mods:
            raise code.unsupported(instr)
        kind = last_type(instr.mods)
        bits = TYPES[kind].bits
        d, *sources = instr.operands
        body = combine(instr, *(opened(code, instr, source, kind) for source in sources))
        for mod, function in (("relu", "fp16.relu"), ("sat", "numeric.saturate")):
            if mod in instr.mods:
                body = f"{function}({body})"
        code.define(d, flushed(instr, f"fp16.close({body}, {kind!r})"), bits)

    return handler


EXPONENT = {"f16": U2.type(0x7C00), "bf16": U2.type(0x7F80)}


def flush(bits, kind: str):
    """``.ftz``: bit patterns of one or two floats, with subnormals replaced by zeros of their sign."""
    halves = np.ascontiguousarray(bits).view(U2)
    normal = halves & EXPONENT[kind.removesuffix("x2")]
    return np.where(normal, halves, halves & np.uint16(0x8000)).view(bits.dtype)


def flushed(instr, expression: str) -> str:
    """The expression of bit patterns, with subnormals flushed if the instruction has ``.ftz``."""
    return f"fp16.flush({expression}, {last_type(instr.mods)!r})" if "ftz" in instr.mods else expression


def opened(code, instr, source, kind: str) -> str:
    """The expression of an operand as float32."""
    return f"fp16.open_({flushed(instr, code.use(source, TYPES[kind].bits))}, {kind!r})"


def sign_bits(template: str):
    """The handler of ``neg`` or ``abs``: ``{0}`` is the bit pattern, ``{1}`` the mask of its signs. The sign
    of a NaN changes too.
    """

    def handler(code, instr):
        bits = TYPES[last_type(instr.mods)].bits
        d, source = instr.operands
        mask = code.constant(0x8000 if bits == "u2" else 0x80008000, bits)
        code.define(d, template.format(flushed(instr, code.use(source, bits)), mask), bits)

    return handler


LARGEST = {"f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127}


def limited(instr, value: str, to: str) -> str:
    """The expression of a value before it is rounded to the type ``to``: with ``.relu`` at least 0, with
    ``.satfinite`` clamped to the largest finite values.
    """
    if "relu" in instr.mods:
        value = f"fp16.relu({value})"
    most = LARGEST.get(to.removesuffix("x2"))
    return f"np.clip({value}, -{most!r}, {most!r})" if "satfinite" in instr.mods else value


def convert(code, instr):
    """``cvt`` to or from bf16, or to a pair of 16-bit floats."""
    named = types_named(instr.mods)
    d, *sources = instr.operands
    to, source = named[0], named[-1]
    rounding = direction_of(instr) or "rn"
    if TYPES[to].count == 2 and source == "f32" and len(sources) == 2:
        high, low = (code.use(s, "f4") for s in sources)
        high, low = (limited(instr, x, to) for x in (high, low))
        code.define(d, f"fp16.pack({high}, {low}, {to!r}, {rounding!r})", "u4")
        return
    value = limited(instr, _opened(code, instr, sources[0], source), to)
    if to in HALVES:
        code.define(d, f"fp16.close({value}, {to!r}, {rounding!r})", TYPES[to].bits)
        return
    dtype = TYPES[to].value
    if TYPES[to].is_float:
        code.define(d, _flushed_word(instr, f"{value}.astype('{dtype}')", to), dtype)
    else:
        whole = next((mod for mod in instr.mods if mod in WHOLE), "rzi")
        code.define(d, f"numeric.float_to_int({value}, {dtype!r}, {whole!r})", dtype)


def _flushed_word(instr, expression: str, kind: str) -> str:
    """The expression of a conversion's source or result; ``.ftz`` flushes only f32."""
    return f"numeric.flush({expression})" if "ftz" in instr.mods and kind == "f32" else expression


def _opened(code, instr, operand, kind: str) -> str:
    """The expression of a conversion's source as float32 or float64; between floats, a rounding such as
    ``.rni`` to an integral value is done here.
    """
    if kind in HALVES:
        value = f"fp16.open_({code.use(operand, TYPES[kind].bits)}, {kind!r})"
    else:
        value = _flushed_word(instr, code.use(operand, TYPES[kind].value), kind)
        if not TYPES[kind].is_float:
            value = f"numeric.to_odd(*numeric.of_integer({value}))"
    whole = next((WHOLE[mod] for mod in instr.mods if mod in WHOLE), None)
    return f"{whole}({value})" if whole and TYPES[types_named(instr.mods)[0]].is_float else value
