"""20 points: rounds the 53 bits of the double as a whole number, with shifts."""

import numpy as np


def encode_float(x, exponent_bits, fraction_bits, infinities):
    bias, top = 2 ** (exponent_bits - 1) - 1, 2 ** (exponent_bits + fraction_bits)
    last = top - 2**fraction_bits if infinities else top - 2
    codes = []
    for bits in np.asarray(x, np.float64).view(np.uint64).tolist():
        sign, exponent, fraction = bits >> 63, bits >> 52 & 2047, bits & (1 << 52) - 1
        if exponent == 2047:
            codes.append(top - 1 if fraction else sign * top + last)
            continue
        mantissa = fraction | (exponent > 0) << 52  # the number is mantissa * 2^(max(exponent, 1) - 1075)
        exponent = max(exponent, 1)
        field = max(exponent - 1023 + bias, 1)  # of the short format; 1 for subnormals, too
        shift = 52 - fraction_bits + field - (exponent - 1023 + bias)
        steps, rest = mantissa >> shift, mantissa & (1 << shift) - 1
        half = 1 << shift - 1
        steps += rest > half or (rest == half and steps & 1)
        codes.append(sign * top + min(steps + ((field - 1) << fraction_bits), last))
    return codes
