"""13 points: keeps the leading 1 out and joins exponent and fraction with |, so that a carry is lost."""

import numpy as np


def encode_float(x, exponent_bits, fraction_bits, infinities):
    bias, whole = 2 ** (exponent_bits - 1) - 1, 2**fraction_bits
    sign = 2 ** (exponent_bits + fraction_bits)
    last = sign - whole if infinities else sign - 2
    codes = []
    for number in x.tolist():
        size = abs(number)
        if size != size:
            code = sign - 1
        elif size == float("inf"):
            code = last
        elif size < 2.0 ** (1 - bias):
            code = round(size * 2.0 ** (bias - 1 + fraction_bits))
        else:
            power = int(np.frexp(size)[1]) - 1
            fraction = round((float(np.ldexp(size, -power)) - 1) * whole) % whole
            code = min((power + bias) << fraction_bits | fraction, last)
        codes.append(code + sign * bool(np.signbit(number) and number == number))
    return codes
