"""Arithmetic that NumPy does not have: fused multiply-add, high halves of products, conversions, bit fields.

All functions take and return arrays with one element a lane, or one element for all lanes.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.ufuncs import ufunc

UFUNCS = "fma", "idiv", "irem", "flush", "least", "greatest"  # call ufuncs, which handle wrapped arrays
I4, I8, U4, U8, F8 = (np.dtype(d) for d in ("i4", "i8", "u4", "u8", "f8"))


def two_sum(a, b):
    """(a + b rounded to nearest, the rounding error)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(value, missing):
    """Round to odd: truncate towards zero, and set the last bit if that is inexact, so that a second rounding
    to a narrower type gives the same as a single one. ``value`` is a float64 rounded to nearest, ``missing``
    its rounding error.
    """
    lost = np.isfinite(value) & (missing != 0) & ~np.isnan(missing)
    if not lost.any():
        return value
    past = lost & ((missing < 0) == (value > 0))  # rounded away from zero: one less in the bit pattern
    return ((value.view(U8) - past) | lost).view(F8)


def fma_odd(a, b, c):
    """a*b + c rounded to odd, in float64, for factors of at most 24 bits, whose product is exact."""
    return to_odd(*two_sum(a * b, c))


def fma(a, b, c):
    """a*b + c of float32 or float64 with one rounding."""
    return ufunc("fma", a.dtype.char)(a, b, c)


def mul_hi_s32(a, b):
    return (np.multiply(a, b, dtype=I8) >> 32).astype(I4)


def mul_hi_u32(a, b):
    return (np.multiply(a, b, dtype=U8) >> np.uint64(32)).astype(U4)


def mul_hi_u64(a, b):
    mask, s = np.uint64(0xFFFFFFFF), np.uint64(32)
    ah, al, bh, bl = a >> s, a & mask, b >> s, b & mask
    mid = ah * bl + ((al * bl) >> s)
    low = (mid & mask) + al * bh
    return ah * bh + (mid >> s) + (low >> s)


def mul_hi_s64(a, b):
    ua, ub = a.view(U8), b.view(U8)
    high = mul_hi_u64(ua, ub)
    high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(I8)


def idiv(a, b):
    """Integer division that truncates towards zero, as in C; all ones for a division by 0, as on a GPU."""
    return ufunc("quotient" if a.dtype.kind == "i" else "unsigned_quotient", a.dtype.char)(a, b)


def irem(a, b):
    """Remainder with the sign of the dividend, as in C."""
    return ufunc("remainder" if a.dtype.kind == "i" else "unsigned_remainder", a.dtype.char)(a, b)


def shift_left(a, n):
    """``shl``: a shift by the width or more gives 0 (PTX clamps the amount)."""
    width = a.dtype.itemsize * 8
    return np.where(n >= width, a.dtype.type(0), a << np.minimum(n, width - 1).astype(a.dtype))


def shift_right(a, n):
    """``shr``: clamps the amount; signed types fill with the sign."""
    width = a.dtype.itemsize * 8
    if a.dtype.kind == "i":
        return a >> np.minimum(n, width - 1).astype(a.dtype)
    return np.where(n >= width, a.dtype.type(0), a >> np.minimum(n, width - 1).astype(a.dtype))


def float_to_int(x, dtype, rounding):
    """Convert with a rounding of PTX (``rni``, ``rzi``, ``rmi``, ``rpi``), saturating.

    NaN becomes 0, or only the highest bit set if either type has 64 bits.
    """
    dtype = np.dtype(dtype)
    r = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding](x.astype(F8))
    info, bits = np.iinfo(dtype), 8 * dtype.itemsize
    with np.errstate(invalid="ignore"):
        nan = np.isnan(r)
        high = r >= float(info.max)
        low = r <= float(info.min)
        body = np.where(high | low | nan, 0.0, r).astype(dtype)
    body = np.where(high, dtype.type(info.max), np.where(low, dtype.type(info.min), body))
    if (x.dtype == F8 or bits == 64) and nan.any():
        body = np.where(nan, np.array(1 << bits - 1, f"u{dtype.itemsize}").view(dtype), body)
    return body


def float_to_float(x, dtype, rounding):
    """Convert between float widths; for ``rz``, ``rm`` and ``rp`` the nearest value is corrected by one step
    if it was rounded in the wrong direction.
    """
    dtype = np.dtype(dtype)
    integral = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.get(rounding)
    if integral:
        return integral(x).astype(dtype)
    with np.errstate(over="ignore"):
        y = x.astype(dtype)
    if rounding in (None, "rn") or dtype.itemsize >= x.dtype.itemsize:
        return y
    wide = y.astype(x.dtype)
    past = {"rz": np.abs(wide) > np.abs(x), "rm": wide > x, "rp": wide < x}[rounding]
    towards = {"rz": 0, "rm": -np.inf, "rp": np.inf}[rounding]
    return np.where(past, np.nextafter(y, dtype.type(towards)), y)


def of_integer(x):
    """(an integer as float64 rounded to nearest, the rounding error)."""
    value = x.astype(F8)
    if x.dtype.itemsize < 8:
        return value, np.zeros(1)
    high = np.floor(value * 2.0**-32)
    low = value - high * 2.0**32
    back = (high.astype(I8).view(U8) << np.uint64(32)) + low.astype(U8)  # modulo 2**64
    return value, (x.view(U8) - back).view(I8).astype(F8)


def saturate(x):
    """``.sat``: clamp to [0, 1]; NaN and -0 become +0."""
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1) + 0).astype(x.dtype)


def flush(x):
    """``.ftz``: subnormals become zeros of their sign."""
    return ufunc("flush", x.dtype.char)(x)


def least(a, b, nan_wins: bool):
    """``min`` of floats: -0 is less than +0; of a number and NaN it is the number, or NaN if ``nan_wins``."""
    return ufunc("least_or_nan" if nan_wins else "least", a.dtype.char)(a, b)


def greatest(a, b, nan_wins: bool):
    """``max`` of floats, as ``least``."""
    return ufunc("greatest_or_nan" if nan_wins else "greatest", a.dtype.char)(a, b)


def of_magnitudes(function, a, b, nan_wins: bool):
    """``.xorsign.abs``: ``function`` of the magnitudes, with the exclusive or of the signs."""
    sign = np.where(np.signbit(a) ^ np.signbit(b), -1, 1)
    return np.copysign(function(np.abs(a), np.abs(b), nan_wins), sign).astype(a.dtype)


def approx(function, x):
    """An approximate hardware function, computed in float64 and rounded once to the type of ``x``."""
    return function(x.astype(F8)).astype(x.dtype)


def rsqrt(x):
    return 1 / np.sqrt(x)


def popc(x):
    return np.bitwise_count(x).astype(U4)


def clz(x):
    """Leading zeros; the width for 0."""
    width = x.dtype.itemsize * 8
    for step in (1, 2, 4, 8, 16, 32):  # all bits below the leading one are set
        if step < width:
            x = x | x >> x.dtype.type(step)
    return (width - np.bitwise_count(x)).astype(U4)


def bfind(x, shift: bool):
    """``bfind``: the number of the leading one (of ~x for negative x), counted from the top if ``shift``;
    0xFFFFFFFF if there is none.
    """
    if x.dtype.kind == "i":
        x = np.where(x < 0, ~x, x)
    width = x.dtype.itemsize * 8
    zeros = clz(x.view(f"u{x.dtype.itemsize}"))
    return np.where(zeros == width, U4.type(0xFFFFFFFF), zeros if shift else U4.type(width - 1) - zeros)


def brev(x):
    """Bits in reverse order."""
    width = x.dtype.itemsize * 8
    t = x.dtype.type
    for step, mask in (
        (1, 0x5555555555555555),
        (2, 0x3333333333333333),
        (4, 0x0F0F0F0F0F0F0F0F),
        (8, 0x00FF00FF00FF00FF),
        (16, 0x0000FFFF0000FFFF),
    ):
        if step < width:
            m = t(mask & ((1 << width) - 1))
            x = ((x >> t(step)) & m) | ((x & m) << t(step))
    return (x >> t(32)) | (x << t(32)) if width == 64 else x


def bfe(x, start, length):
    """``bfe``: extracts a bit field; for signed types it is sign-extended."""
    width = x.dtype.itemsize * 8
    unsigned = x.view(f"u{x.dtype.itemsize}")
    t = unsigned.dtype.type
    start = np.minimum(start & 0xFF, width).astype(unsigned.dtype)
    length = np.minimum(length & 0xFF, width).astype(unsigned.dtype)
    inside = np.minimum(length, t(width) - start)  # bits of the field that are within the register
    body = shift_right(unsigned, start) & _low_bits(inside)
    if x.dtype.kind == "i":
        top = np.minimum(start + length, t(width)) - t(1)
        sign = (shift_right(unsigned, top) & t(1)).astype(bool) & (length > 0)
        body = np.where(sign, body | ~_low_bits(inside), body).astype(unsigned.dtype)
    return body.view(x.dtype)


def _low_bits(length):
    """A mask of the low ``length`` bits; all bits for the width or more."""
    return shift_left(np.ones_like(length), length) - length.dtype.type(1)


def bfi(field, into, start, length):
    """``bfi``: inserts the ``length`` low bits of ``field`` into ``into`` at bit ``start``."""
    start, length = (start & 0xFF).astype(field.dtype), (length & 0xFF).astype(field.dtype)
    mask = shift_left(_low_bits(length), start)
    return (into & ~mask) | (shift_left(field, start) & mask)


PRMT = {  # the four selectors of each mode, by the two low bits of the third operand
    mode: np.array(selectors, U4)
    for mode, selectors in {
        "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
        "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
        "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
        "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
        "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
        "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
    }.items()
}


def prmt(a, b, selector):
    """``prmt``: each nibble of ``selector`` selects one of the eight bytes of (b, a), or, with its top bit
    set, eight copies of that byte's sign.
    """
    both = (b.astype(U8) << np.uint64(32)) | a
    out = np.zeros(1, U8)
    for i in range(4):
        nibble = (selector >> np.uint32(4 * i)).astype(U8) & np.uint64(15)
        byte = (both >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        signed = np.where(byte >= np.uint64(128), np.uint64(255), np.uint64(0))
        out = out | (np.where(nibble >= np.uint64(8), signed, byte) << np.uint64(8 * i))
    return out.astype(U4)
