"""float64 arithmetic in fractions, for the few operands with which float64's own intermediate results
overflow or vanish. One lane at a time: slow, and right.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

SAFE = 2.0**250  # operands within this and its inverse leave no trace of overflow or underflow in error terms
OF_FRACTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}


def extreme(name: str, operands) -> np.ndarray:
    """The lanes whose result is finite or decided by finite numbers although an operand is beyond SAFE."""
    magnitudes = [np.abs(x) for x in operands]
    far = finite = False
    for x in magnitudes:
        far = far | (x > SAFE) | ((x < 1 / SAFE) & (x > 0))
        finite = finite & (x < np.inf) if finite is not False else x < np.inf
    if name in ("div", "rcp"):
        finite = finite & (magnitudes[-1] > 0)
    return far & finite


def mend(result, name: str, direction: str, operands):
    """``result`` with the extreme lanes computed again, rounded in ``direction`` or to nearest (``rn``)."""
    if name == "fma":  # a product that overflows on the way to an infinite sum
        a, b, c = operands
        result = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, result)
    lanes = np.flatnonzero(np.broadcast_to(extreme(name, operands), result.shape))
    if lanes.size:
        result = result.copy()
        given = [np.broadcast_to(x, result.shape)[lanes].tolist() for x in operands]
        for lane, *values in zip(lanes.tolist(), *given):
            exact = OF_FRACTIONS[name](*map(Fraction, values))
            if exact:  # the sign of a zero was right already
                result[lane] = rounded(exact, direction)
    return result


def rounded(exact: Fraction, direction: str) -> float:
    """A fraction other than zero as a float64."""
    try:
        nearest = exact.numerator / exact.denominator  # of two ints: rounded once
        missing = exact - Fraction(nearest)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
        missing = -exact
    if (missing < 0 and direction == "rm") or (missing < 0 < exact and direction == "rz"):
        return math.nextafter(nearest, -math.inf)
    if (missing > 0 and direction == "rp") or (exact < 0 < missing and direction == "rz"):
        return math.nextafter(nearest, math.inf)
    return nearest
