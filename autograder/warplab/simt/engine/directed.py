"""Rounding in a direction (``.rz`` to zero, ``.rm`` down, ``.rp`` up) of arithmetic whose result no wider type of NumPy holds.

The operation is done to nearest, the sign of what that left out is found without error, and a result on the wrong side
moves by one step. float32 goes through float64: no sum, product, quotient or root of float32 lies so close to another
float32 that the first rounding could hide it. Products below 1e-290 and above 1e290 are rounded to nearest.
"""

from __future__ import annotations

import numpy as np

from .numeric import float_to_float
from .types import type_of

ROUNDINGS = ("rz", "rm", "rp")
SPLIT = 134217729.0  # 2**27 + 1


def or_(plain):
    """The handler of an opcode that has directed forms: ``plain`` takes all the others."""

    def handler(t, instr):
        rounding = next((m for m in instr.mods if m in ROUNDINGS), None)
        if (
            rounding is None
            or instr.mods[-1] not in ("f32", "f64")
            or (instr.mods[-1] == "f32" and instr.opcode not in ("div", "sqrt", "rcp"))
        ):
            plain(t, instr)
            return
        dtype = type_of(t, instr)
        d, *sources = instr.operands
        name = "fma" if instr.opcode == "mad" else instr.opcode
        t.define(d, f"D.compute({name!r}, {rounding!r}, '{dtype}', {', '.join(t.use(s, dtype) for s in sources)})", dtype)

    return handler


def compute(name: str, rounding: str, dtype: str, *x):
    """``name`` of the operands, rounded in a direction."""
    if dtype == "f4":
        wide = [v.astype("f8") for v in x]
        return float_to_float({"div": lambda a, b: a / b, "sqrt": np.sqrt, "rcp": lambda a: 1 / a}[name](*wide), "f4", rounding)
    result, missing = EXACT[name](*x)
    return towards(result, missing, rounding)


def towards(result, missing, rounding: str):
    """``result`` moved by one step where ``missing`` (true value less result, its sign at least) says that it went past."""
    infinite = np.float64(np.inf)
    with np.errstate(invalid="ignore"):
        missing = np.where(np.isfinite(result) & np.isfinite(missing), missing, 0.0)
        down, up = np.nextafter(result, -infinite), np.nextafter(result, infinite)
        if rounding == "rm":
            return np.where(missing < 0, down, result)
        if rounding == "rp":
            return np.where(missing > 0, up, result)
        return np.where((result > 0) & (missing < 0), down, np.where((result < 0) & (missing > 0), up, result))


def _sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _product(a, b):
    p = a * b
    ah = a * SPLIT
    ah = ah - (ah - a)
    bh = b * SPLIT
    bh = bh - (bh - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _fma(a, b, c):
    p, low = _product(a, b)
    s, rest = _sum(p, c)
    rest, last = _sum(rest, low)
    fused, left = _sum(s, rest)
    return fused, np.where(left != 0, left, last)


def _quotient(a, b):
    q = a / b
    p, low = _product(q, b)
    return q, ((a - p) - low) * np.sign(b)


def _root(a):
    s = np.sqrt(a)
    p, low = _product(s, s)
    return s, (a - p) - low


EXACT = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, -b),
    "mul": _product,
    "fma": _fma,
    "div": _quotient,
    "rcp": lambda a: _quotient(np.ones(1), a),
    "sqrt": _root,
}
