"""Arithmetic of integers, float32 and float64, as NumPy.
A function here makes the handler of a row of the table.

A handler gets the code being generated (``translate.Translator``) and the instruction.
"""

from __future__ import annotations

import re

from warplab.simt.engine.rounding import direction_of
from warplab.simt.ptx.ptx_types import dtype_of, unsigned


def saturated(instr, expression: str) -> str:
    """The expression of a float, clamped to [0, 1] where the instruction says ``.sat``."""
    return f"numeric.saturate({expression})" if "sat" in instr.mods else expression


def places_in(template: str) -> int:
    """How many sources a template takes."""
    return len(set(re.findall(r"\{(\d)\}", template)))


def sources_of(code, instr, count: int, dtype: str) -> list[str]:
    """Expressions of the operands after the destination, of which there must be ``count``."""
    sources = instr.operands[1:]
    if len(sources) != count:
        raise code.unsupported(instr, "number of operands")
    return [code.use(source, dtype) for source in sources]


def elementwise(template: str):
    """An instruction without roundings: ``{0}``, ``{1}`` ... are its sources in the type that it names."""
    places = places_in(template)

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        x = sources_of(code, instr, places, dtype)
        code.define(instr.operands[0], saturated(instr, template.format(*x)), dtype)

    return handler


def floats(template: str):
    """A float instruction: ``template`` to nearest, ``rounding.compute`` in a direction (``.rz``,
    ``.rm``, ``.rp``).
    """
    places = places_in(template)

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        x = sources_of(code, instr, places, dtype)
        direction = direction_of(instr)
        if direction is None:
            expression = saturated(instr, template.format(*x, dtype=dtype, bits=8 * int(dtype[1])))
        else:
            name = "fma" if instr.opcode == "mad" else instr.opcode
            expression = f"rounding.compute({name!r}, {direction!r}, {dtype!r}, {', '.join(x)})"
        code.define(instr.operands[0], expression, dtype)

    return handler


def floats_smaller_or_larger(name: str):
    """``min`` and ``max`` of floats: a NaN loses, unless ``.NaN`` says that it wins."""
    ignoring, keeping = elementwise(f"np.f{name}({{0}}, {{1}})"), elementwise(f"np.{name}imum({{0}}, {{1}})")
    return lambda code, instr: (keeping if "NaN" in instr.mods else ignoring)(code, instr)


def integers_smaller_or_larger(name: str):
    """``min`` and ``max`` of integers, with ``.relu`` no less than 0."""

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        d, a, b = instr.operands
        expression = f"np.{name}imum({code.use(a, dtype)}, {code.use(b, dtype)})"
        if "relu" in instr.mods:
            expression = f"np.maximum({expression}, {code.constant(0, dtype)})"
        code.define(d, expression, dtype)

    return handler


def wrapping(operation: str):
    """``add`` and ``sub`` of integers, which wrap."""
    operator = {"add": "+", "sub": "-"}[operation]

    def handler(code, instr):
        if "cc" in instr.mods:
            return carried(operation, takes=False)(code, instr)
        if "sat" in instr.mods:
            raise code.unsupported(instr)
        d, a, b = instr.operands
        dtype = unsigned(dtype_of(instr.mods))
        code.define(d, f"{code.use(a, dtype)} {operator} {code.use(b, dtype)}", dtype)

    return handler


def carried(operation: str, *, takes: bool):
    """32-bit add, sub and mad with the carry flag: ``.cc`` sets it, the ``c`` forms (``takes``) add it in."""

    def handler(code, instr):
        if dtype_of(instr.mods) not in ("i4", "u4"):
            raise code.unsupported(instr, "a carry of other than 32 bits")
        d, *sources = instr.operands
        x = [f"{code.use(o, 'u4')}.astype('u8')" for o in sources]
        if operation == "mad":
            product = f"({x[0]} * {x[1]})"
            high, low = f"({product} >> np.uint64(32))", f"({product} & np.uint64(0xFFFFFFFF))"
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
    """The whole product of two integers and its dtype, twice as wide."""
    wide = f"{dtype[0]}{2 * int(dtype[1])}"
    return f"np.multiply({code.use(a, dtype)}, {code.use(b, dtype)}, dtype='{wide}')", wide


def multiply(code, instr):
    """``mul.lo``, ``mul.hi`` and ``mul.wide`` of integers."""
    dtype = dtype_of(instr.mods)
    d, a, b = instr.operands
    if "wide" in instr.mods:
        code.define(d, *_wide_product(code, a, b, dtype))
    elif "hi" in instr.mods:
        if dtype[1] not in "48":
            raise code.unsupported(instr)
        name = f"numeric.mul_hi_{'s' if dtype[0] == 'i' else 'u'}{int(dtype[1]) * 8}"
        code.define(d, f"{name}({code.use(a, dtype)}, {code.use(b, dtype)})", dtype)
    else:
        work = unsigned(dtype)
        code.define(d, f"{code.use(a, work)} * {code.use(b, work)}", work)


def multiply_add(code, instr):
    """``mad.lo`` and ``mad.wide`` of integers, and ``mad.lo.cc``, ``mad.hi.cc``."""
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
    else:
        raise code.unsupported(instr)
