"""Rounding in a direction (``.rz`` to zero, ``.rm`` down,
``.rp`` up) of arithmetic whose result no wider type of NumPy holds.

The operation is done to nearest, the sign of what that left out is found without error, and a result on the
wrong side moves by one step. float32 goes through float64: no sum, product, quotient or root of float32 lies
so close to another float32 that the first rounding could hide it. Products below 1e-290 and above 1e290 are
rounded to nearest.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.numeric import float_to_float

DIRECTIONS = ("rz", "rm", "rp")
SPLIT = 134217729.0  # 2**27 + 1


def direction_of(instr) -> str | None:
    """The direction that an instruction rounds in, None for to nearest."""
    return next((mod for mod in instr.mods if mod in DIRECTIONS), None)


def compute(name: str, direction: str, dtype: str, *operands):
    """``name`` of float32 (dtype "f4") or float64 ("f8") operands, rounded in a direction."""
    if dtype == "f4":
        return float_to_float(IN_FLOAT64[name](*(x.astype("f8") for x in operands)), "f4", direction)
    result, missing = EXACT[name](*operands)
    return towards(result, missing, direction)


def towards(result, missing, direction: str):
    """``result`` moved by one step where ``missing`` (true value less result,
    its sign at least) says that it went past.
    """
    infinite = np.float64(np.inf)
    with np.errstate(invalid="ignore"):
        missing = np.where(np.isfinite(result) & np.isfinite(missing), missing, 0.0)
        down, up = np.nextafter(result, -infinite), np.nextafter(result, infinite)
        if direction == "rm":
            return np.where(missing < 0, down, result)
        if direction == "rp":
            return np.where(missing > 0, up, result)
        return np.where(
            (result > 0) & (missing < 0), down, np.where((result < 0) & (missing > 0), up, result)
        )


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


IN_FLOAT64 = {  # of float32 operands, opened to float64
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": lambda a, b, c: a * b + c,
    "div": np.divide,
    "rcp": lambda a: 1 / a,
    "sqrt": np.sqrt,
}
EXACT = {  # of float64 operands: the result to nearest, and what it leaves out
    "add": _sum,
    "sub": lambda a, b: _sum(a, -b),
    "mul": _product,
    "fma": _fma,
    "div": _quotient,
    "rcp": lambda a: _quotient(np.ones(1), a),
    "sqrt": _root,
}
