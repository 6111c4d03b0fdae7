"""0 points: cuts the fraction off instead of rounding, as one gets BF16 from the upper half of a float32."""

import numpy as np


def encode_float(x, exponent_bits, fraction_bits, infinities):
    size = np.abs(x)
    bias = 2 ** (exponent_bits - 1) - 1
    sign = 2 ** (exponent_bits + fraction_bits)
    power = np.where(size == 0, 1 - bias, np.maximum(np.frexp(size)[1] - 1, 1 - bias))
    steps = np.floor(np.ldexp(size, fraction_bits - power))
    code = steps + (power + bias - 1) * 2.0**fraction_bits
    last = sign - 2**fraction_bits if infinities else sign - 2
    code = np.where(np.isnan(x), sign - 1, np.minimum(code, last))
    return (code + sign * np.signbit(x)).astype(int)
