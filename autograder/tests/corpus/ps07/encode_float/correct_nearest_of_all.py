"""20 points: decodes every pattern of the format and looks for the nearest, the even one of two."""

import bisect
from fractions import Fraction

import numpy as np


def values_of(exponent_bits, fraction_bits, infinities):
    """The values of the codes 0, 1, 2 ..., and of one more, where the next power would begin."""
    bias, whole = 2 ** (exponent_bits - 1) - 1, 2**fraction_bits
    last = (2**exponent_bits - 1) * whole if infinities else 2**exponent_bits * whole - 2
    values = []
    for code in range(last + 1):
        exponent, fraction = divmod(code, whole)
        mantissa = Fraction(fraction, whole) + (exponent > 0)
        values.append(mantissa * Fraction(2) ** (max(exponent, 1) - bias))
    return values


def encode_float(x, exponent_bits, fraction_bits, infinities):
    values = values_of(exponent_bits, fraction_bits, infinities)
    sign = 2 ** (exponent_bits + fraction_bits)
    codes = []
    for number in x.tolist():
        size = abs(number)
        if np.isnan(number):
            code = sign - 1
        elif np.isinf(number) or size >= values[-1]:
            code = len(values) - 1
        else:
            above = bisect.bisect_left(values, Fraction(size))
            code = above
            if values[above] != size:
                down, up = Fraction(size) - values[above - 1], values[above] - Fraction(size)
                code = above - 1 if down < up or (down == up and (above - 1) % 2 == 0) else above
        codes.append(code + sign * bool(np.signbit(number) and number == number))
    return codes
