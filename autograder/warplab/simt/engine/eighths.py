"""8-bit floats, which PTX only converts: e4m3 (largest 448, no infinity) and e5m2 (largest 57,344), packed in pairs."""

from __future__ import annotations

import numpy as np

from .halves import BITS

KINDS = ("e4m3x2", "e5m2x2")


def _table(exponent_bits: int, fraction_bits: int, bias: int) -> np.ndarray:
    """The values of the 128 codes without a sign."""
    code = np.arange(128)
    exponent, fraction = code >> fraction_bits, (code & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if exponent_bits == 5:
        values[124:] = [np.inf, np.nan, np.nan, np.nan]
    else:
        values[127] = np.nan
    return values


VALUES = {"e4m3x2": _table(4, 3, 7), "e5m2x2": _table(5, 2, 15)}


def decode(bits, kind: str):
    """Two 8-bit floats in 16 bits to float32 of shape (lanes, 2), the low byte first."""
    codes = np.ascontiguousarray(bits).view("u1").reshape(-1, 2)
    values = VALUES[kind][codes & 127]
    return np.where(codes & 128, -values, values).astype("f4")


def encode(high, low, kind: str):
    """Two floats to 16 bits, to nearest even; beyond the largest value is the largest (``satfinite``), NaN is 0x7F."""
    values = np.stack(np.broadcast_arrays(low, high), axis=1).astype("f8")
    finite = VALUES[kind][np.isfinite(VALUES[kind])]
    middle = (finite[:-1] + finite[1:]) / 2
    size = np.abs(values)
    code = np.searchsorted(middle, size, side="left")
    tie = (code < middle.size) & (size == middle[np.minimum(code, middle.size - 1)])
    code = np.where(tie & (code % 2 == 1), code + 1, code)
    code = np.where(np.isnan(values), 127, code | np.where(np.signbit(values), 128, 0))
    return np.ascontiguousarray(code.astype("u1")).view("u2").reshape(-1)


def convert(t, instr) -> bool:
    """``cvt`` to or from a pair of 8-bit floats; False where the instruction names none."""
    kind = next((m for m in instr.mods if m in KINDS), None)
    if kind is None:
        return False
    d, *sources = instr.operands
    types = [m for m in instr.mods if m in KINDS or m in BITS or m == "f32"]
    relu = "h.relu" if "relu" in instr.mods else ""
    if types[0] == kind and types[1] == "f32":
        high, low = (f"{relu}({t.use(s, 'f4')})" for s in sources)
        t.define(d, f"e.encode({high}, {low}, {kind!r})", "u2")
    elif types[0] == kind:
        t.emit(f"pair = {relu}(h.open_({t.use(sources[0], 'u4')}, {types[1]!r}))")
        t.define(d, f"e.encode(pair[:, 1], pair[:, 0], {kind!r})", "u2")
    else:
        t.define(d, f"h.close({relu}(e.decode({t.use(sources[0], 'u2')}, {kind!r})), {types[0]!r})", "u4")
    return True
