"""What the PTX manual says of each instruction, one value at a time, in Python integers and fractions.

It shares no code with the engine: every function below is to be read beside the section of the PTX ISA manual
that bears the instruction's name. A value is its bit pattern, a Python int. Where the manual leaves the
result open (a NaN's payload, an approximation, division by zero) a function gives what is allowed: see
``agrees``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

# name: bits of the exponent, bits of the fraction that are stored
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52), "e5m2": (5, 2), "e4m3": (4, 3)}


@dataclass(frozen=True)
class Near:
    """An approximation: the true value, and how far from it a result may lie."""

    true: float
    error: float


@dataclass(frozen=True)
class OneOf:
    """Any of these bit patterns."""

    patterns: tuple[int, ...]


ANYTHING = object()
NAN = object()  # some NaN of the result's format
INF, MINUS_INF = math.inf, -math.inf


@functools.cache
def width(kind: str) -> int:
    """Bits of a type."""
    digits = "".join(c for c in kind.split("x2")[0].removeprefix("b") if c.isdigit())
    return int(digits) * (2 if kind.endswith("x2") else 1)


def signed(pattern: int, bits: int) -> int:
    pattern &= (1 << bits) - 1
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern


def integer(pattern: int, kind: str) -> int:
    """The number that a pattern is in an integer type."""
    bits = width(kind)
    return signed(pattern, bits) if kind[0] == "s" else pattern & ((1 << bits) - 1)


def mask(bits: int) -> int:
    return (1 << bits) - 1


def bounds(kind: str) -> tuple[int, int]:
    bits = width(kind)
    return (-(1 << (bits - 1)), mask(bits - 1)) if kind[0] == "s" else (0, mask(bits))


def clamp(value: int, kind: str) -> int:
    low, high = bounds(kind)
    return max(low, min(high, value))


# floats


def infinity(fmt: str) -> int:
    """Bits of +infinity (of e4m3, which has none: of the pattern above the largest exponent)."""
    exponent, fraction = FORMATS[fmt]
    return mask(exponent) << fraction


def sign_bit(fmt: str) -> int:
    return 1 << sum(FORMATS[fmt])


def is_nan(pattern: int, fmt: str) -> bool:
    return pattern & (sign_bit(fmt) - 1) > infinity(fmt)


def is_subnormal(pattern: int, fmt: str) -> bool:
    return 0 < pattern & (sign_bit(fmt) - 1) < 1 << FORMATS[fmt][1]


def negative(pattern: int, fmt: str) -> bool:
    return bool(pattern & sign_bit(fmt))


def number(pattern: int, fmt: str):
    """A pattern's value: a float that is NaN, infinite or a signed zero, else a Fraction."""
    exponent_bits, fraction_bits = FORMATS[fmt]
    sign = -1 if pattern & sign_bit(fmt) else 1
    magnitude = pattern & (sign_bit(fmt) - 1)
    if magnitude > infinity(fmt):
        return math.nan
    if magnitude == infinity(fmt):
        return sign * INF
    if magnitude == 0:
        return sign * 0.0
    exponent, fraction = magnitude >> fraction_bits, magnitude & mask(fraction_bits)
    bias = mask(exponent_bits - 1)
    if exponent:
        fraction, exponent = fraction + (1 << fraction_bits), exponent - 1
    power = exponent + 1 - bias - fraction_bits
    return Fraction(sign * fraction << power) if power >= 0 else Fraction(sign * fraction, 1 << -power)


def special(value) -> bool:
    """Whether ``number`` gave a NaN, an infinity or a zero."""
    return isinstance(value, float)


def rounded(value, fmt: str, mode: str = "rn") -> int:
    """A Fraction, an int, or one of ``number``'s floats, in ``fmt``: to nearest with ties to even (``rn``)
    or away from zero (``rna``), towards zero (``rz``), down (``rm``), up (``rp``).
    """
    if special(value):
        return special_pattern(value, fmt)
    if value == 0:
        return 0
    exponent_bits, fraction_bits = FORMATS[fmt]
    bias = mask(exponent_bits - 1)
    numerator, denominator = abs(value.numerator), value.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator < denominator << exponent if exponent >= 0 else numerator << -exponent < denominator:
        exponent -= 1
    unit = max(exponent, 1 - bias) - fraction_bits  # the last place is worth 2**unit
    if unit >= 0:
        denominator <<= unit
    else:
        numerator <<= -unit
    whole, rest = divmod(numerator, denominator)
    below = value < 0
    whole += {
        "rn": 2 * rest > denominator or (2 * rest == denominator and whole & 1),
        "rna": 2 * rest >= denominator,
        "rz": False,
        "rm": below and rest > 0,
        "rp": not below and rest > 0,
    }[mode]
    pattern = whole + ((unit + fraction_bits + bias - 1) << fraction_bits)
    if pattern >= infinity(fmt):
        inward = mode == "rz" or (mode == "rm" and not below) or (mode == "rp" and below)
        pattern = infinity(fmt) - 1 if inward else infinity(fmt)
    return pattern | (sign_bit(fmt) if below else 0)


def special_pattern(value: float, fmt: str) -> int:
    sign = sign_bit(fmt) if math.copysign(1, value) < 0 else 0
    return infinity(fmt) + 1 if math.isnan(value) else sign | (infinity(fmt) if value else 0)


def flushed(pattern: int, fmt: str, mods) -> int:
    """``.ftz``: a subnormal is a zero of its sign."""
    if "ftz" in mods and is_subnormal(pattern, fmt):
        return pattern & sign_bit(fmt)
    return pattern


def finish(value, fmt: str, mods, zero_sign: int = 0):
    """An exact result as the manual rounds it: ``.rn`` and its kin, ``.ftz``, ``.sat``, ``.relu``."""
    if special(value) and math.isnan(value):
        return OneOf((0, sign_bit(fmt))) if "sat" in mods else NAN
    mode = next((m for m in mods if m in ("rz", "rm", "rp", "rna")), "rn")
    pattern = zero_sign * sign_bit(fmt) if value == 0 and not special(value) else rounded(value, fmt, mode)
    choices = {flushed(pattern, fmt, mods)}
    if "ftz" in mods and not special(value) and abs(value) < Fraction(number(1 << FORMATS[fmt][1], fmt)):
        choices |= {pattern, pattern & sign_bit(fmt)} if not is_subnormal(pattern, fmt) else set()
    if "sat" in mods:
        one = mask(FORMATS[fmt][0] - 1) << FORMATS[fmt][1]
        choices = {
            c for p in choices for c in ((0, sign_bit(fmt)) if negative(p, fmt) or not p else (min(p, one),))
        }
    if "relu" in mods:
        choices = {0 if negative(p, fmt) else p for p in choices}
    return OneOf(tuple(choices)) if len(choices) > 1 else choices.pop()


def zero_of_sum(a_negative: bool, b_negative: bool, both_zero: bool, mods) -> int:
    """Sign of a sum that is zero: IEEE 754, 6.3."""
    if both_zero and a_negative == b_negative:
        return int(a_negative)
    return int("rm" in mods)


def float_sum(a, b, a_negative, b_negative, fmt, mods):
    if special(a) and not math.isfinite(a) or special(b) and not math.isfinite(b):
        return finish((a if special(a) else 0.0) + (b if special(b) else 0.0), fmt, mods)
    zeros = special(a) and special(b)
    exact = Fraction(a) + Fraction(b)
    return finish(exact, fmt, mods, zero_of_sum(a_negative, b_negative, zeros, mods) if exact == 0 else 0)


def product(a, b):
    """The exact product of two of ``number``'s values."""
    if special(a) or special(b):
        x = a if special(a) else math.copysign(1.0, a)
        y = b if special(b) else math.copysign(1.0, b)
        return math.nan if math.isnan(x) or math.isnan(y) or {abs(x), abs(y)} == {0.0, INF} else x * y
    return a * b


def add(fmt, mods, a, b):
    a, b = flushed(a, fmt, mods), flushed(b, fmt, mods)
    return float_sum(number(a, fmt), number(b, fmt), negative(a, fmt), negative(b, fmt), fmt, mods)


def sub(fmt, mods, a, b):
    return add(fmt, mods, a, b ^ sign_bit(fmt))


def mul(fmt, mods, a, b):
    a, b = flushed(a, fmt, mods), flushed(b, fmt, mods)
    return finish(product(number(a, fmt), number(b, fmt)), fmt, mods)


def fma(fmt, mods, a, b, c):
    a, b, c = (flushed(x, fmt, mods) for x in (a, b, c))
    p = product(number(a, fmt), number(b, fmt))
    return float_sum(p, number(c, fmt), negative(a, fmt) != negative(b, fmt), negative(c, fmt), fmt, mods)


def div(fmt, mods, a, b):
    a, b = flushed(a, fmt, mods), flushed(b, fmt, mods)
    x, y = number(a, fmt), number(b, fmt)
    sign = -1.0 if negative(a, fmt) != negative(b, fmt) else 1.0
    if special(x) or special(y):
        if x != x or y != y or (x == 0 and y == 0) or (abs(x) == INF and abs(y) == INF):
            true = math.nan
        else:
            true = sign * (INF if abs(x) == INF or y == 0 else 0.0)
        return finish(true, fmt, mods)
    if "approx" in mods and not Fraction(1, 1 << 126) <= abs(y) <= 1 << 126:
        return ANYTHING  # a small divisor's quotient is not bounded, a large one's may be 0
    if "approx" in mods or "full" in mods:
        return approximate(x / y, fmt, mods, ulps=2)
    return finish(x / y, fmt, mods)


def rcp(fmt, mods, a):
    one = rounded(Fraction(1), fmt)
    if fmt == "f32" and "approx" in mods:
        a = flushed(a, fmt, mods)
        x = number(a, fmt)
        return approximate(1 / x, fmt, mods, ulps=1) if not special(x) else div(fmt, (), one, a)
    if "approx" in mods:  # rcp.approx.ftz.f64: 20 bits of the fraction, the low word of the result is 0
        a = flushed(a, fmt, mods)
        x = number(a, fmt)
        if special(x):
            return div(fmt, (), one, a)
        true = float(1 / x)
        return Near(true, abs(true) * (2.0**-20 if abs(true) >= 2.0**-1022 else 1))  # a subnormal may be 0
    return div(fmt, mods, one, a)


def sqrt(fmt, mods, a):
    a = flushed(a, fmt, mods)
    x = number(a, fmt)
    if special(x):
        return finish(math.nan if x < 0 else x, fmt, mods)
    if x < 0:
        return NAN
    if "approx" in mods:
        return approximate(Fraction(math.sqrt(x)), fmt, mods, ulps=2)
    # more bits than the format holds, and one that says whether the root goes on
    shift = 1200
    root = math.isqrt((x.numerator << 2 * shift) // x.denominator)
    exact = root * root * x.denominator == x.numerator << 2 * shift
    return finish(Fraction(2 * root + (not exact), 2 << shift), fmt, mods)


def approximate(true: Fraction, fmt: str, mods, ulps: float):
    """A result that may be ``ulps`` units in the last place off; with ``.ftz`` a subnormal one is zero."""
    smallest = Fraction(number(1 << FORMATS[fmt][1], fmt))
    if abs(true) >= 2 ** mask(FORMATS[fmt][0] - 1) * 2:
        return Near(math.copysign(INF, true), 0)
    largest = max(abs(true), smallest)
    exponent = math.frexp(float(largest))[1] - 1
    error = Fraction(ulps) * Fraction(2) ** (exponent - FORMATS[fmt][1])
    if abs(true) < smallest and ("ftz" in mods or ulps):
        error = max(error, abs(true) if "ftz" in mods else error)
    return Near(float(true), float(error))


def smaller(fmt, mods, a, b, larger: bool = False):
    """``min``; with ``larger`` ``max``. Of two zeros, -0 is the smaller; a NaN loses unless ``.NaN`` says
    that it wins; ``.xorsign.abs`` compares magnitudes and gives the exclusive or of the signs.
    """
    a, b = flushed(a, fmt, mods), flushed(b, fmt, mods)
    sign = (a ^ b) & sign_bit(fmt)
    if "abs" in mods:
        a, b = a & ~sign_bit(fmt), b & ~sign_bit(fmt)
    if is_nan(a, fmt) or is_nan(b, fmt):
        if "NaN" in mods or (is_nan(a, fmt) and is_nan(b, fmt)):
            return NAN
        chosen = b if is_nan(a, fmt) else a
    else:
        ordered = sorted((a, b), key=lambda x: (number(x, fmt), not negative(x, fmt)))
        chosen = ordered[1 if larger else 0]
    return chosen & ~sign_bit(fmt) | sign if "abs" in mods else chosen


def compare(operator: str, fmt: str, mods, a: int, b: int) -> bool:
    """A comparison of ``setp`` and ``set``. ``fmt`` is a float's or an integer's type."""
    if fmt in FORMATS:
        a, b = flushed(a, fmt, mods), flushed(b, fmt, mods)
        x, y = number(a, fmt), number(b, fmt)
        unordered = x != x or y != y
        if operator in ("num", "nan"):
            return unordered == (operator == "nan")
        if operator.endswith("u") and unordered:
            return True
        operator = operator.removesuffix("u")
        if unordered:
            return False
    else:
        x, y = integer(a, fmt), integer(b, fmt)
        operator = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(operator, operator)
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[operator]


LOGIC = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}


def test_property(name: str, fmt: str, a: int) -> bool:
    """``testp``."""
    magnitude = a & (sign_bit(fmt) - 1)
    return {
        "finite": magnitude < infinity(fmt),
        "infinite": magnitude == infinity(fmt),
        "number": magnitude <= infinity(fmt),
        "notanumber": magnitude > infinity(fmt),
        "normal": 1 << FORMATS[fmt][1] <= magnitude < infinity(fmt),
        "subnormal": 0 < magnitude < 1 << FORMATS[fmt][1],
    }[name]


def transcendental(name: str, fmt: str, mods, a: int):
    """``lg2``, ``ex2``, ``sin``, ``cos``, ``tanh``, ``rsqrt``: special values, and the greatest errors."""
    a = flushed(a, fmt, mods)
    x = number(a, fmt)
    if x != x:
        return NAN
    value = float(x)
    if name == "rsqrt":
        if value == 0 or value == INF:
            return special_pattern(math.copysign(INF, value) if value == 0 else 0.0, fmt)
        if value < 0:
            return NAN
        true = 1 / math.sqrt(value)
        return Near(true, true * 2 ** (-22.4 if fmt == "f32" else -20))
    if name == "lg2":
        if value == 0 or value == INF:
            return special_pattern(MINUS_INF if value == 0 else INF, fmt)
        if value < 0:
            return NAN
        true = math.log2(value)
        return Near(true, 2.0**-22 if 0.5 < value < 2 else abs(true) * 2.0**-22)
    if name in ("sin", "cos"):
        if abs(value) == INF:
            return NAN
        if value == 0:
            return a if name == "sin" else rounded(Fraction(1), fmt)
        if abs(value) > 2 * math.pi:
            return ANYTHING  # the manual bounds the error in [-2 pi, 2 pi]
        return Near(math.sin(value) if name == "sin" else math.cos(value), 2.0**-20.5)
    if name == "tanh":
        if value == 0:
            return a
        true = math.tanh(value)
        return Near(true, {"f32": abs(true) * 2.0**-11, "f16": 2.0**-10.987, "bf16": 2.0**-8}[fmt])
    if abs(value) == INF:  # ex2
        return special_pattern(INF if value > 0 else 0.0, fmt)
    if value == 0:
        return rounded(Fraction(1), fmt)
    largest = mask(FORMATS[fmt][0] - 1) + 1
    if value >= largest:
        return special_pattern(INF, fmt)
    true = 2.0**value if value > -1100 else 0.0
    relative = {"f32": 2.0**-22, "f16": 2.0**-9.9, "bf16": 2.0**-7}[fmt]
    smallest = float(number(1 << FORMATS[fmt][1], fmt))
    return Near(
        true, max(true * relative, smallest if true < smallest and "ftz" in mods else smallest * relative)
    )


# integers


def multiply(kind: str, mods, a: int, b: int) -> int:
    """``mul``: the whole product, its low or its high half."""
    whole = integer(a, kind) * integer(b, kind)
    return whole if "wide" in mods else whole >> width(kind) if "hi" in mods else whole


def quotient(kind: str, a: int, b: int):
    x, y = integer(a, kind), integer(b, kind)
    if y == 0:
        return ANYTHING
    return (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


def remainder(kind: str, a: int, b: int):
    q = quotient(kind, a, b)
    return q if q is ANYTHING else integer(a, kind) - q * integer(b, kind)


def shift_left(kind: str, a: int, b: int) -> int:
    return (a & mask(width(kind))) << min(b & mask(32), width(kind))


def shift_right(kind: str, a: int, b: int) -> int:
    return integer(a, kind) >> min(b & mask(32), width(kind))


def funnel(direction: str, mode: str, a: int, b: int, c: int) -> int:
    """``shf``: n = (.clamp) ? min(c, 32) : c & 0x1f; (b, a) shifted by n, of ``.l`` the high word."""
    n = min(c, 32) if mode == "clamp" else c & 0x1F
    return (b << n) | (a >> (32 - n)) if direction == "l" else (b << (32 - n)) | (a >> n)


def lop3(a: int, b: int, c: int, table: int) -> int:
    """``lop3``: bit i of the result is the entry of the table at (a_i, b_i, c_i), a the highest."""
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32))


def bfe(kind: str, a: int, b: int, c: int) -> int:
    """``bfe``, the manual's pseudo-code."""
    msb, pos, length = width(kind) - 1, b & 0xFF, c & 0xFF
    if kind[0] == "u" or length == 0:
        sign = 0
    else:
        sign = a >> min(pos + length - 1, msb) & 1
    return sum(((a >> (pos + i) & 1) if i < length and pos + i <= msb else sign) << i for i in range(msb + 1))


def bfi(kind: str, a: int, b: int, c: int, d: int) -> int:
    """``bfi``: for (i = 0; i < len && pos + i <= msb; i++) f[pos + i] = a[i]."""
    msb, pos, length = width(kind) - 1, c & 0xFF, d & 0xFF
    for i in range(length):
        if pos + i <= msb:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return b


def bmsk(mode: str, a: int, b: int) -> int:
    """``bmsk``: a is the lowest bit, b how many: mask = (1 << b) - 1 << a, amounts clamped or wrapped."""
    a, b = (min(x, 32) if mode == "clamp" else x & 31 for x in (a, b))
    return mask(b) << a


def bfind(kind: str, shiftamt: bool, a: int) -> int:
    """``bfind``: the place of the highest bit that is not the sign."""
    value = integer(a, kind)
    value = ~value if value < 0 else value
    if value == 0:
        return mask(32)
    return width(kind) - value.bit_length() if shiftamt else value.bit_length() - 1


def brev(kind: str, a: int) -> int:
    return int(f"{a & mask(width(kind)):0{width(kind)}b}"[::-1], 2)


def clz(kind: str, a: int) -> int:
    return width(kind) - (a & mask(width(kind))).bit_length()


def prmt(mode: str | None, a: int, b: int, c: int) -> int:
    """``prmt``: four of the eight bytes b7..b0 = {b, a}; msb of a selector copies the byte's sign over it."""
    source = [a >> 8 * i & 0xFF for i in range(4)] + [b >> 8 * i & 0xFF for i in range(4)]
    n = c & 3
    selectors = {  # low byte first
        None: [c >> 4 * i & 15 for i in range(4)],
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
        "rc8": [n] * 4,
        "ecl": [max(i, n) for i in range(4)],
        "ecr": [min(i, n) for i in range(4)],
        "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
    }[mode]
    out = 0
    for i, s in enumerate(selectors):
        byte = source[s & 7]
        out |= (0xFF * (byte >> 7) if s & 8 else byte) << 8 * i
    return out


def dot(a_kind: str, b_kind: str, half: str | None, a: int, b: int, c: int) -> int:
    """``dp4a``; with ``half`` ``dp2a``, which takes the low or high two bytes of b."""
    total = c
    for i in range(2 if half else 4):
        bits = 16 if half else 8
        x = integer(a >> bits * i, f"{a_kind[0]}{bits}")
        y = integer(b >> 8 * (i + (2 if half == "hi" else 0)), f"{b_kind[0]}8")
        total += x * y
    return total


def video(name: str, parts: int, kinds, saturates: bool, accumulates: bool, a: int, b: int, c: int) -> int:
    """``vadd2`` and its kin, without selectors: each part by itself, and with ``.add`` their sum plus c."""
    bits = 32 // parts
    d_kind, a_kind, b_kind = (f"{kind[0]}{bits}" for kind in kinds)
    out, total = 0, 0
    for i in range(parts):
        x, y = integer(a >> bits * i, a_kind), integer(b >> bits * i, b_kind)
        value = {
            "vadd": x + y,
            "vsub": x - y,
            "vabsdiff": abs(x - y),
            "vmin": min(x, y),
            "vmax": max(x, y),
            "vavrg": (x + y + 1) >> 1,
        }[name]
        total += value
        out |= ((clamp(value, d_kind) if saturates else value) & mask(bits)) << bits * i
    return total + c if accumulates else out


# conversions

WHOLE = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def convert(to: str, source: str, mods, a: int):
    """``cvt`` of one value."""
    to_float, from_float = to in FORMATS, source in FORMATS
    of_source = mods if source == "f32" else ()  # .ftz concerns inputs and results of type .f32 alone
    mods = mods if to == "f32" else tuple(m for m in mods if m != "ftz")
    if not from_float:
        value = integer(a, source)
        if to_float:
            return finish(Fraction(value), to, mods)
        return clamp(value, to) if "sat" in mods else value
    a = flushed(a, source, of_source)
    value = number(a, source)
    whole = next((WHOLE[m] for m in mods if m in WHOLE), None)
    if not to_float:
        if value != value:
            return 1 << (width(to) - 1) if source == "f64" or width(to) == 64 else 0
        if value in (INF, MINUS_INF):
            return bounds(to)[value > 0]
        return clamp(whole(Fraction(value)), to)
    if whole and not special(value):
        zero = int(value < 0)
        value = Fraction(whole(value))
        return finish(value, to, mods, zero)
    if "satfinite" in mods and value in (INF, MINUS_INF):
        value = Fraction(1 << 200) * (1 if value > 0 else -1)
    if "satfinite" in mods and value == value and not special(value):
        return min_magnitude(finish(value, to, mods), infinity(to) - 1, to)
    return finish(value, to, mods)


def min_magnitude(pattern: int, most: int, fmt: str) -> int:
    sign = pattern & sign_bit(fmt)
    return sign | min(pattern & ~sign_bit(fmt), most)


def to_fp8(kind: str, source: str, mods, a: int) -> int:
    """``cvt.rn.satfinite`` to e4m3 (largest 448 = 0x7E, one NaN 0x7F) or e5m2 (largest 57344 = 0x7B)."""
    value = number(a, source)
    if value != value:
        return 0x7F
    if "relu" in mods and (value < 0 or negative(a, source)):
        return 0
    most = 0x7E if kind == "e4m3" else 0x7B
    sign = 0x80 if negative(a, source) else 0
    if value in (INF, MINUS_INF):
        return sign | most
    if value == 0:
        return sign
    # one format with a larger exponent field holds both without their special patterns
    exponent_bits, fraction_bits = FORMATS[kind]
    unit = max(math.frexp(float(abs(value)))[1] - 1, 2 - 2 ** (exponent_bits - 1)) - fraction_bits
    scaled = abs(Fraction(value)) / Fraction(2) ** unit
    pattern = round(scaled) + ((unit + fraction_bits - (2 - 2 ** (exponent_bits - 1))) << fraction_bits)
    return sign | min(pattern, most)


def from_fp8(kind: str, pattern: int):
    """The value of an 8-bit float."""
    if kind == "e5m2":
        return number(pattern, "e5m2")
    if pattern & 0x7F == 0x7F:
        return math.nan
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    value = (
        Fraction(fraction, 512) if exponent == 0 else Fraction(8 + fraction) * Fraction(2) ** (exponent - 10)
    )
    sign = -1 if pattern & 0x80 else 1
    return sign * value if value else sign * 0.0


def to_tf32(mods, a: int):
    """``cvt.tf32.f32``: 10 bits of the fraction; the low 13 bits of the result are open."""
    value = number(a, "f32")
    if value != value:
        return NAN
    if special(value):
        return 0 if "relu" in mods and negative(a, "f32") else a
    mode = next(m for m in mods if m in ("rn", "rna", "rz"))
    exponent = max(math.frexp(float(abs(value)))[1] - 1, -126)
    unit = Fraction(2) ** (exponent - 10)
    scaled, rest = divmod(abs(value), unit)
    up = {"rz": False, "rna": 2 * rest >= unit, "rn": 2 * rest > unit or (2 * rest == unit and scaled & 1)}[
        mode
    ]
    if "relu" in mods and value < 0:
        return 0
    pattern = rounded((scaled + up) * unit, "f32")
    return pattern | (sign_bit("f32") if value < 0 else 0)


# warps


def shuffle(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """``shfl.sync``, the manual's pseudo-code: the lane to read, and the predicate."""
    bval, cval, segmask = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segmask) | (cval & ~segmask & 31)
    min_lane = lane & segmask
    if mode == "up":
        j = lane - bval
        p = j >= max_lane
    elif mode == "down":
        j = lane + bval
        p = j <= max_lane
    elif mode == "bfly":
        j = lane ^ bval
        p = j <= max_lane
    else:
        j = min_lane | (bval & ~segmask & 31)
        p = j <= max_lane
    return (j if p else lane), p


def step(operation: str, kind: str, old: int, value: int, compare_with: int = 0):
    """What an atomic operation leaves in memory."""
    x, y = (integer(v, kind) if kind not in FORMATS else v for v in (old, value))
    if operation == "add":
        return (x + y) & mask(width(kind)) if kind not in FORMATS else add(kind, (), x, y)
    return {
        "min": lambda: min(x, y),
        "max": lambda: max(x, y),
        "and": lambda: x & y,
        "or": lambda: x | y,
        "xor": lambda: x ^ y,
        "exch": lambda: y,
        "inc": lambda: 0 if x >= y else x + 1,
        "dec": lambda: y if x == 0 or x > y else x - 1,
        "cas": lambda: value if old == compare_with else old,
    }[operation]() & mask(width(kind))


# verdicts


def agrees(allowed, got: int, kind: str) -> bool:
    """Whether the pattern ``got`` of type ``kind`` is what the manual allows."""
    if allowed is ANYTHING:
        return True
    if isinstance(allowed, tuple):  # a pair: the low half first
        half = width(kind) // 2
        return all(
            agrees(a, got >> half * i & mask(half), kind.removesuffix("x2")) for i, a in enumerate(allowed)
        )
    if kind == "tf32":  # the low 13 bits of a tf32's register are open
        return agrees(allowed, got if is_nan(got, "f32") else got & ~mask(13), "f32")
    if allowed is NAN:
        return is_nan(got, kind)
    if isinstance(allowed, OneOf):
        return got in allowed.patterns
    if isinstance(allowed, Near):
        if is_nan(got, kind):
            return False
        value = number(got, kind)
        if special(value) and abs(value) == INF:
            return abs(allowed.true) + allowed.error >= largest(kind) and (value > 0) == (allowed.true > 0)
        if math.isinf(allowed.true):
            return abs(value) >= largest(kind) * (1 - 2.0**-20) and (value > 0) == (allowed.true > 0)
        unit = 2.0 ** (
            max(math.frexp(allowed.true)[1] - 1, 2 - (1 << FORMATS[kind][0] - 1)) - FORMATS[kind][1]
        )
        return abs(float(value) - allowed.true) <= allowed.error + unit / 2
    if kind in FORMATS and is_nan(allowed & mask(width(kind)), kind):
        return is_nan(got, kind)
    return got == allowed & mask(width(kind))


def largest(fmt: str) -> float:
    return float(number(infinity(fmt) - 1, fmt))
