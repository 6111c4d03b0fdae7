"""Handlers of arithmetic on integers, float32 and float64, which emit NumPy code.

A handler gets the code being generated (``translate.Translator``) and the instruction; most functions here
make one for a row of the table.
"""

from __future__ import annotations

import re

from warplab.simt.ptx.ptx_types import dtype_of, unsigned


def finished(instr, expression: str) -> str:
    """The expression of a float result: subnormals flushed with ``.ftz``, clamped to [0, 1] with ``.sat``."""
    if "ftz" in instr.mods:
        expression = f"numeric.flush({expression})"
    return f"numeric.saturate({expression})" if "sat" in instr.mods else expression


def flushed(instr, expression: str) -> str:
    """The expression of a float operand, with subnormals flushed if the instruction has ``.ftz``."""
    return f"numeric.flush({expression})" if "ftz" in instr.mods else expression


def direction_of(instr) -> str | None:
    """The direction in which an instruction rounds: "rz", "rm" or "rp"; None for to nearest."""
    return next((mod for mod in instr.mods if mod in ("rz", "rm", "rp")), None)


def places_in(template: str) -> int:
    """The number of sources in a template."""
    return len(set(re.findall(r"\{(\d)\}", template)))


def sources_of(code, instr, dtypes: list[str]) -> list[str]:
    """Expressions of the operands after the destination, one for each of the ``dtypes``."""
    sources = instr.operands[1:]
    if len(sources) != len(dtypes):
        raise code.unsupported(instr, "number of operands")
    return [flushed(instr, code.use(source, dtype)) for source, dtype in zip(sources, dtypes)]


def elementwise(template: str, kinds: str = "", result: str = "="):
    """The handler of an instruction without rounding modes; ``{0}``, ``{1}`` ... in the template are its
    sources. ``kinds`` are the dtypes of the sources (default: all "="), ``result`` that of the result: "=" is
    the instruction's type, "u=" the unsigned type of the same width.
    """
    names = kinds.split() or ["="] * places_in(template)

    def handler(code, instr):
        own = dtype_of(instr.mods)
        dtypes = {"=": own, "u=": unsigned(own)}
        x = sources_of(code, instr, [dtypes.get(name, name) for name in names])
        expression = finished(instr, template.format(*x))
        code.define(instr.operands[0], expression, dtypes.get(result, result))

    return handler


def floats(template: str):
    """The handler of a float instruction: ``template`` rounds to nearest, ``rounding.compute`` in a direction
    (``.rz``, ``.rm``, ``.rp``).
    """
    places = places_in(template)

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        # ptxas accepts rcp.rn.ftz.f64, which is not in the manual
        if dtype == "f8" and "ftz" in instr.mods and "approx" not in instr.mods:
            raise code.unsupported(instr, "modifier .ftz")
        x = sources_of(code, instr, [dtype] * places)
        direction = direction_of(instr)
        if direction is None:
            expression = template.format(*x, dtype=dtype, bits=8 * int(dtype[1]))
        else:
            name = "fma" if instr.opcode == "mad" else instr.opcode
            expression = f"rounding.compute({name!r}, {direction!r}, {dtype!r}, {', '.join(x)})"
        code.define(instr.operands[0], finished(instr, expression), dtype)

    return handler


def extremum(name: str, instr, a: str, b: str) -> str:
    """The expression of ``min`` or ``max`` of two floats; a NaN operand is ignored, but not with ``.NaN``."""
    function, nan_wins = f"numeric.{name}", "NaN" in instr.mods
    if "xorsign" in instr.mods:
        return f"numeric.of_magnitudes({function}, {a}, {b}, {nan_wins})"
    return f"{function}({a}, {b}, {nan_wins})"


def floats_smaller_or_larger(name: str):
    """The handler of ``min`` ("least") or ``max`` ("greatest") of floats."""

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        a, b = sources_of(code, instr, [dtype, dtype])
        code.define(instr.operands[0], extremum(name, instr, a, b), dtype)

    return handler


def integers_smaller_or_larger(name: str):
    """The handler of ``min`` or ``max`` of integers; with ``.relu`` negative results become 0."""

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        d, a, b = instr.operands
        expression = f"np.{name}imum({code.use(a, dtype)}, {code.use(b, dtype)})"
        if "relu" in instr.mods:
            expression = f"np.maximum({expression}, {code.constant(0, dtype)})"
        code.define(d, expression, dtype)

    return handler


def wrapping(operation: str):
    """The handler of ``add`` or ``sub`` of integers, which wrap without ``.sat``."""
    operator = {"add": "+", "sub": "-"}[operation]

    def handler(code, instr):
        if "cc" in instr.mods:
            return carried(operation, takes=False)(code, instr)
        d, a, b = instr.operands
        if "sat" in instr.mods:
            x, y = (f"{code.use(o, 'i4')}.astype('i8')" for o in (a, b))
            code.define(d, f"{clamped(f'{x} {operator} {y}')}", "i4")
            return
        dtype = unsigned(dtype_of(instr.mods))
        code.define(d, f"{code.use(a, dtype)} {operator} {code.use(b, dtype)}", dtype)

    return handler


def clamped(expression: str) -> str:
    """The expression of 64-bit integers, clamped to 32 bits."""
    return f"np.clip({expression}, -(1 << 31), (1 << 31) - 1).astype('i4')"


def carried(operation: str, *, takes: bool):
    """The handler of a 32-bit add, sub or mad with the carry flag: ``.cc`` sets it, and the forms addc, subc
    and madc (``takes``) use it.
    """

    def handler(code, instr):
        if dtype_of(instr.mods) not in ("i4", "u4"):
            raise code.unsupported(instr, "a carry of other than 32 bits")
        d, *sources = instr.operands
        x = [f"{code.use(o, 'u4')}.astype('u8')" for o in sources]
        if operation == "mad":
            product = f"({x[0]} * {x[1]})"
            high, low = f"({product} >> np.uint64(32))", f"({product} & np.uint64(0xFFFFFFFF))"
            if dtype_of(instr.mods) == "i4":
                factors = ", ".join(code.use(o, "i4") for o in sources[:2])
                high = f"numeric.mul_hi_s32({factors}).view('u4').astype('u8')"
            total = f"{high if 'hi' in instr.mods else low} + {x[2]}"
        else:
            total = f"{x[0]} {'+' if operation == 'add' else '-'} {x[1]}"
        if takes:
            total += f" {'-' if operation == 'sub' else '+'} carry"
        code.emit(f"total = {total}")
        if "cc" in instr.mods:
            code.emit("carry = (total >> np.uint64(32)) & np.uint64(1)")
        code.define(d, "total.astype('u4')", "u4")

    return handler


def _wide_product(code, a, b, dtype: str) -> tuple[str, str]:
    """(expression of the whole product of two integers, its dtype, which is twice as wide)."""
    wide = f"{dtype[0]}{2 * int(dtype[1])}"
    return f"np.multiply({code.use(a, dtype)}, {code.use(b, dtype)}, dtype='{wide}')", wide


def _high_product(code, a, b, dtype: str) -> str:
    """The expression of the high half of the product of two integers."""
    if dtype[1] == "2":
        product, _ = _wide_product(code, a, b, dtype)
        return f"({product} >> 16).astype('{dtype}')"
    name = f"numeric.mul_hi_{'s' if dtype[0] == 'i' else 'u'}{int(dtype[1]) * 8}"
    return f"{name}({code.use(a, dtype)}, {code.use(b, dtype)})"


def multiply(code, instr):
    """``mul.lo``, ``mul.hi`` and ``mul.wide`` of integers."""
    dtype = dtype_of(instr.mods)
    d, a, b = instr.operands
    if "wide" in instr.mods:
        code.define(d, *_wide_product(code, a, b, dtype))
    elif "hi" in instr.mods:
        code.define(d, _high_product(code, a, b, dtype), dtype)
    else:
        work = unsigned(dtype)
        code.define(d, f"{code.use(a, work)} * {code.use(b, work)}", work)


def multiply_add(code, instr):
    """``mad.lo``, ``mad.hi`` and ``mad.wide`` of integers, and ``mad.lo.cc``, ``mad.hi.cc``."""
    if "cc" in instr.mods:
        return carried("mad", takes=False)(code, instr)
    dtype = dtype_of(instr.mods)
    d, a, b, c = instr.operands
    if "wide" in instr.mods:
        product, wide = _wide_product(code, a, b, dtype)
        code.define(d, f"{product} + {code.use(c, wide)}", wide)
    elif "lo" in instr.mods:
        work = unsigned(dtype)
        code.define(d, f"{code.use(a, work)} * {code.use(b, work)} + {code.use(c, work)}", work)
    elif "sat" in instr.mods:
        total = f"{_high_product(code, a, b, dtype)}.astype('i8') + {code.use(c, dtype)}"
        code.define(d, clamped(total), dtype)
    else:
        code.define(d, f"{_high_product(code, a, b, dtype)} + {code.use(c, dtype)}", dtype)
