"""Directed rounding of arithmetic: towards zero (``.rz``), down (``.rm``) or up (``.rp``).

The operation is done to nearest in float64, and its rounding error is computed exactly. A float64 result that
was rounded in the wrong direction moves by one step; for float32 it is first rounded to odd, so that the
second rounding is correct. Operands so large or small that the error would overflow or underflow are computed
with fractions, lane by lane.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from warplab.simt.engine.numeric import float_to_float, fma, of_integer, to_odd, two_sum


def compute(name: str, direction: str, dtype: str, *operands):
    """``name`` of float32 (dtype "f4") or float64 ("f8") operands, rounded in a direction."""
    wide = tuple(x.astype("f8") for x in operands)
    value, missing = (EXACT_OF_FLOAT32 if dtype == "f4" else EXACT)[name](*wide)
    if direction == "rm" and name in ADDENDS:  # x + (-x) is -0 if rounded down
        a, b = ADDENDS[name](*wide)
        value = np.where((value == 0) & (np.signbit(a) != np.signbit(b)), -0.0, value)
    if dtype == "f4":
        return float_to_float(to_odd(value, missing), "f4", direction)
    result = towards(value, missing, direction)
    return result if name == "sqrt" else mend(result, name, direction, wide)


def integer(x, dtype: str, direction: str):
    """An integer as a float, rounded in a direction."""
    value, missing = of_integer(x)
    if dtype == "f8":
        return towards(value, missing, direction)
    return float_to_float(to_odd(value, missing), dtype, direction)


def towards(result, missing, direction: str):
    """``result`` moved by one step where it was rounded in the wrong direction; ``missing`` has the sign of
    the exact value minus ``result``.
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


def _product(a, b):
    p = a * b
    return p, fma(a, b, -p)


def _fma(a, b, c):
    p, low = _product(a, b)
    s, rest = two_sum(p, c)
    rest, last = two_sum(rest, low)
    fused, left = two_sum(s, rest)
    changed = np.isfinite(fused) & (rest != 0)  # else s is right, with the sign of a zero or an infinity
    return np.where(changed, fused, s), np.where(left != 0, left, last)


def _quotient(a, b):
    q = a / b
    return q, fma(-q, b, a) * np.sign(b)


def _root(a):
    scale = np.where(a < 2.0**-500, 2.0**300, np.where(a > 2.0**500, 2.0**-300, 1.0))  # of the root: exact
    a = a * scale * scale
    s = np.sqrt(a)
    return s / scale, fma(-s, s, a)


ADDENDS = {
    "add": lambda a, b: (a, b),
    "sub": lambda a, b: (a, -b),
    "fma": lambda a, b, c: (a * b, c),
}
EXACT = {  # functions of float64 operands: (result rounded to nearest, rounding error)
    "add": two_sum,
    "sub": lambda a, b: two_sum(a, -b),
    "mul": _product,
    "fma": _fma,
    "div": _quotient,
    "rcp": lambda a: _quotient(np.ones(1), a),
    "sqrt": _root,
}
NOTHING = np.zeros(1)
EXACT_OF_FLOAT32 = EXACT | {  # a product of two float32 is exact in float64
    "mul": lambda a, b: (a * b, NOTHING),
    "fma": lambda a, b, c: two_sum(a * b, c),
}

SAFE = 2.0**250  # error terms of operands between this and its inverse neither overflow nor underflow
OF_FRACTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}


def extreme(name: str, operands) -> np.ndarray:
    """The lanes to compute with fractions: an operand is beyond SAFE, and all are finite."""
    magnitudes = np.broadcast_arrays(*map(np.abs, operands))
    far = np.any([(x > SAFE) | ((x < 1 / SAFE) & (x > 0)) for x in magnitudes], axis=0)
    finite = np.all([x < np.inf for x in magnitudes], axis=0)
    if name in ("div", "rcp"):
        finite = finite & (magnitudes[-1] > 0)
    return far & finite


def mend(result, name: str, direction: str, operands):
    """``result`` with the ``extreme`` lanes computed again, rounded in ``direction``."""
    if name == "fma":  # where c is infinite, an overflow of the product must not make it NaN
        a, b, c = operands
        result = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, result)
    lanes = np.flatnonzero(np.broadcast_to(extreme(name, operands), result.shape))
    if lanes.size:
        result = result.copy()
        given = [np.broadcast_to(x, result.shape)[lanes].tolist() for x in operands]
        for lane, *values in zip(lanes.tolist(), *given):
            exact = OF_FRACTIONS[name](*map(Fraction, values))
            if exact:  # a zero has the right sign already
                result[lane] = rounded(exact, direction)
    return result


def rounded(exact: Fraction, direction: str) -> float:
    """A fraction other than zero as a float64, rounded in ``direction``."""
    try:
        nearest = exact.numerator / exact.denominator  # a quotient of two ints is correctly rounded
        missing = exact - Fraction(nearest)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
        missing = -exact
    if (missing < 0 and direction == "rm") or (missing < 0 < exact and direction == "rz"):
        return math.nextafter(nearest, -math.inf)
    if (missing > 0 and direction == "rp") or (exact < 0 < missing and direction == "rz"):
        return math.nextafter(nearest, math.inf)
    return nearest
