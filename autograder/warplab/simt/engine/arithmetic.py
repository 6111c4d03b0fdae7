"""Arithmetic, comparison and bit instructions, as NumPy. One handler per opcode."""

from __future__ import annotations


from ..ptx.parser import WIDTH, Imm, Vec
from .halves import BITS, both, kind_of
from .types import NUMPY, directed, rounded, saturated, type_of, unsigned


def binary(operator: str):
    """add and sub: integers wrap, floats round to nearest unless the instruction says otherwise."""

    def handler(t, instr):
        dtype = type_of(t, instr)
        d, a, b = instr.operands
        if dtype[0] == "f" and (rounding := directed(t, instr, dtype)):
            t.define(d, rounded(f"({{0}} {operator} {{1}})", [t.use(a, dtype), t.use(b, dtype)], rounding), dtype)
            return
        if dtype[0] != "f" and "sat" in instr.mods:
            raise t.unsupported(instr)
        work = unsigned(dtype)
        t.define(d, saturated(t, instr, f"{t.use(a, work)} {operator} {t.use(b, work)}", work), work)

    return handler


def mul(t, instr):
    dtype = type_of(t, instr)
    d, a, b = instr.operands
    if dtype[0] == "f" and (rounding := directed(t, instr, dtype)):
        t.define(d, rounded("({0} * {1})", [t.use(a, dtype), t.use(b, dtype)], rounding), dtype)
    elif dtype[0] == "f":
        t.define(d, saturated(t, instr, f"{t.use(a, dtype)} * {t.use(b, dtype)}", dtype), dtype)
    elif "wide" in instr.mods:
        wide = f"{dtype[0]}{2 * int(dtype[1])}"
        t.define(d, f"np.multiply({t.use(a, dtype)}, {t.use(b, dtype)}, dtype='{wide}')", wide)
    elif "hi" in instr.mods:
        if dtype[1] not in "48":
            raise t.unsupported(instr)
        name = f"n.mul_hi_{'s' if dtype[0] == 'i' else 'u'}{int(dtype[1]) * 8}"
        t.define(d, f"{name}({t.use(a, dtype)}, {t.use(b, dtype)})", dtype)
    else:
        work = unsigned(dtype)
        t.define(d, f"{t.use(a, work)} * {t.use(b, work)}", work)


def mad(t, instr):
    dtype = type_of(t, instr)
    if dtype[0] == "f":
        return fma(t, instr)
    d, a, b, c = instr.operands
    if "wide" in instr.mods:
        wide = f"{dtype[0]}{2 * int(dtype[1])}"
        t.define(d, f"np.multiply({t.use(a, dtype)}, {t.use(b, dtype)}, dtype='{wide}') + {t.use(c, wide)}", wide)
    elif "lo" in instr.mods:
        work = unsigned(dtype)
        t.define(d, f"{t.use(a, work)} * {t.use(b, work)} + {t.use(c, work)}", work)
    else:
        raise t.unsupported(instr)


def fma(t, instr):
    dtype = type_of(t, instr)
    if dtype not in ("f4", "f8"):
        raise t.unsupported(instr)
    d, a, b, c = instr.operands
    if rounding := directed(t, instr, dtype):
        t.define(d, rounded("({0} * {1} + {2})", [t.use(o, dtype) for o in (a, b, c)], rounding), dtype)
        return
    call = f"n.fma{int(dtype[1]) * 8}({t.use(a, dtype)}, {t.use(b, dtype)}, {t.use(c, dtype)})"
    t.define(d, saturated(t, instr, call, dtype), dtype)


def carried(operation: str, *, takes: bool):
    """32-bit add, sub and mad with the carry flag: ``.cc`` sets it, the ``c`` forms (``takes``) add it in."""

    def handler(t, instr):
        if type_of(t, instr) not in ("i4", "u4"):
            raise t.unsupported(instr, "a carry of other than 32 bits")
        d, *sources = instr.operands
        x = [f"{t.use(o, 'u4')}.astype('u8')" for o in sources]
        if operation == "mad":
            product = f"({x[0]} * {x[1]})"
            part = f"({product} >> np.uint64(32))" if "hi" in instr.mods else f"({product} & np.uint64(0xFFFFFFFF))"
            total = f"{part} + {x[2]}"
        else:
            total = f"{x[0]} {'+' if operation == 'add' else '-'} {x[1]}"
        if takes:
            total += f" {'-' if operation == 'sub' else '+'} carry"
        t.emit(f"total = {total}")
        if "cc" in instr.mods:
            t.emit("carry = (total >> np.uint64(32)) & np.uint64(1)")
        t.define(d, "total.astype('u4')", "u4")

    return handler


def with_carry(plain, operation: str):
    """The plain instruction, or its carrying form when it says ``.cc``."""
    setting = carried(operation, takes=False)
    return lambda t, instr: (setting if "cc" in instr.mods else plain)(t, instr)


def div(t, instr):
    dtype = type_of(t, instr)
    d, a, b = instr.operands
    if dtype[0] == "f":
        if directed(t, instr, dtype):
            raise t.unsupported(instr, "directed rounding")
        t.define(d, f"{t.use(a, dtype)} / {t.use(b, dtype)}", dtype)
    else:
        t.define(d, f"n.idiv({t.use(a, dtype)}, {t.use(b, dtype)})", dtype)


def rem(t, instr):
    dtype = type_of(t, instr)
    d, a, b = instr.operands
    t.define(d, f"n.irem({t.use(a, dtype)}, {t.use(b, dtype)})", dtype)


def unary(template: str, *, floats=True, ints=True):
    """An instruction with one source; ``{0}`` is the source."""

    def handler(t, instr):
        dtype = type_of(t, instr)
        if (dtype[0] == "f" and not floats) or (dtype[0] != "f" and not ints):
            raise t.unsupported(instr)
        d, a = instr.operands
        t.define(d, saturated(t, instr, template.format(t.use(a, dtype)), dtype), dtype)

    return handler


def rounded_function(template: str):
    """sqrt and rcp, correctly rounded; ``{1}`` is the dtype."""

    def handler(t, instr):
        dtype = type_of(t, instr)
        if directed(t, instr, dtype):
            raise t.unsupported(instr, "directed rounding")
        d, a = instr.operands
        t.define(d, template.format(t.use(a, dtype), dtype), dtype)

    return handler


def approximate(function: str):
    """A special-function instruction such as ``ex2.approx.f32``: computed in float64, rounded once."""

    def handler(t, instr):
        dtype = type_of(t, instr)
        if dtype not in ("f4", "f8"):
            raise t.unsupported(instr)
        d, a = instr.operands
        t.define(d, f"n.approx({function}, {t.use(a, dtype)})", dtype)

    return handler


def minmax(name: str):
    def handler(t, instr):
        dtype = type_of(t, instr)
        d, a, b = instr.operands
        function = f"np.{'f' + name if dtype[0] == 'f' and 'NaN' not in instr.mods else name + 'imum'}"
        t.define(d, f"{function}({t.use(a, dtype)}, {t.use(b, dtype)})", dtype)

    return handler


def logic(operator: str):
    def handler(t, instr):
        dtype = type_of(t, instr)
        d, a, b = instr.operands
        t.define(d, f"{t.use(a, dtype)} {operator} {t.use(b, dtype)}", dtype)

    return handler


def lop3(t, instr):
    d, a, b, c, table = instr.operands
    x, y, z = (t.use(o, "u4") for o in (a, b, c))
    terms = []
    for bit in range(8):
        if int(table.value) >> bit & 1:
            terms.append("(" + " & ".join(v if bit >> s & 1 else f"~{v}" for v, s in ((x, 2), (y, 1), (z, 0))) + ")")
    t.define(d, " | ".join(terms) or f"{x} & ~{x}", "u4")


def shift(name: str):
    def handler(t, instr):
        dtype = type_of(t, instr)
        d, a, b = instr.operands
        if name == "left":
            dtype = unsigned(dtype)
        source = t.use(a, dtype)
        width = int(dtype[1]) * 8
        if isinstance(b, Imm) and 0 <= b.value < width:  # the common case needs no clamping
            t.define(d, f"{source} {'<<' if name == 'left' else '>>'} {t.constant(b.value, dtype)}", dtype)
        else:
            t.define(d, f"n.shift_{name}({source}, {t.use(b, 'u4')})", dtype)

    return handler


def shf(t, instr):
    d, low, high, amount = instr.operands
    s = f"({t.use(amount, 'u4')} & np.uint32(31))" if "wrap" in instr.mods else f"np.minimum({t.use(amount, 'u4')}, np.uint32(32))"
    joined = f"(({t.use(high, 'u4')}.astype('u8') << np.uint64(32)) | {t.use(low, 'u4')})"
    if "l" in instr.mods:
        t.define(d, f"(({joined} << {s}.astype('u8')) >> np.uint64(32)).astype('u4')", "u4")
    else:
        t.define(d, f"({joined} >> {s}.astype('u8')).astype('u4')", "u4")


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def compare(t, instr, a, b) -> str:
    """Expression of a comparison; for a packed pair it has a column for each half."""
    op = instr.mods[0]
    kind = kind_of(instr)
    if kind and kind == [m for m in instr.mods if m in WIDTH][-1]:
        dtype = "f4"
        x, y = (f"h.open_({t.use(o, BITS[kind])}, {kind!r})" for o in (a, b))
    else:
        dtype = type_of(t, instr)
        x, y = t.use(a, dtype), t.use(b, dtype)
    if dtype[0] == "f":
        if op == "num":
            return f"~(np.isnan({x}) | np.isnan({y}))"
        if op == "nan":
            return f"(np.isnan({x}) | np.isnan({y}))"
        if op.endswith("u") and op[:-1] in COMPARE:
            if op == "neu":
                return f"({x} != {y})"
            return f"(({x} {COMPARE[op[:-1]]} {y}) | np.isnan({x}) | np.isnan({y}))"
        if op == "ne":
            return f"(({x} != {y}) & ~(np.isnan({x}) | np.isnan({y})))"
    if op not in COMPARE:
        raise t.unsupported(instr)
    return f"({x} {COMPARE[op]} {y})"


LOGIC = {"and": "&", "or": "|", "xor": "^"}


def setp(t, instr):
    d, a, b, *rest = instr.operands
    result = compare(t, instr, a, b)
    if (kind_of(instr) or "").endswith("x2"):
        if rest:
            raise t.unsupported(instr, "a second predicate")
        both(t, d, result)
    elif rest:
        operator = LOGIC[instr.mods[1]]
        second = t.use(rest[0], "?")
        if isinstance(d, Vec):
            t.emit(f"cmp = {result}")
            t.define(d.items[0], f"cmp {operator} {second}", "?")
            t.define(d.items[1], f"~cmp {operator} {second}", "?")
        else:
            t.define(d, f"{result} {operator} {second}", "?")
    elif isinstance(d, Vec):
        t.emit(f"cmp = {result}")
        t.define(d.items[0], "cmp", "?")
        t.define(d.items[1], "~cmp", "?")
    else:
        t.define(d, result, "?")


def set_(t, instr):
    """``set``: all ones (integers) or 1.0 (floats) where the comparison holds, else 0."""
    d, a, b, *rest = instr.operands
    to = [m for m in instr.mods if m in WIDTH][0]
    result = compare(t, instr, a, b)
    if rest:
        result = f"({result} {LOGIC[next(m for m in instr.mods if m in LOGIC)]} {t.use(rest[0], '?')})"
    if to in BITS:
        t.define(d, f"h.close({result}.astype('f4'), {to!r})", BITS[to])
    elif to == "f32":
        t.define(d, f"{result}.astype('f4')", "f4")
    elif (kind_of(instr) or "").endswith("x2"):
        t.define(d, f"(np.where({result}, np.uint16(0xFFFF), np.uint16(0))).view('u4').reshape(-1)", "u4")
    else:
        out = f"i{NUMPY[to][1]}"
        t.define(d, f"-{result}.astype('{out}')", out)


def selp(t, instr):
    dtype = type_of(t, instr)
    d, a, b, p = instr.operands
    t.define(d, f"np.where({t.use(p, '?')}, {t.use(a, dtype)}, {t.use(b, dtype)})", dtype)


def copysign(t, instr):
    dtype = type_of(t, instr)
    d, a, b = instr.operands
    t.define(d, f"np.copysign({t.use(b, dtype)}, {t.use(a, dtype)})", dtype)  # PTX: the sign of a, the magnitude of b


def testp(t, instr):
    dtype = type_of(t, instr)
    d, a = instr.operands
    x = t.use(a, dtype)
    test = {"finite": f"np.isfinite({x})", "infinite": f"np.isinf({x})", "number": f"~np.isnan({x})", "notanumber": f"np.isnan({x})"}
    if instr.mods[0] not in test:
        raise t.unsupported(instr)
    t.define(d, test[instr.mods[0]], "?")


def bfind(t, instr):
    """The highest bit that is set (of a negative number: that is clear), all ones if none; ``shiftamt`` counts from the top."""
    dtype = type_of(t, instr)
    d, a = instr.operands
    t.define(d, f"n.bfind({t.use(a, dtype)}, {'shiftamt' in instr.mods})", "u4")


def bfe(t, instr):
    dtype = type_of(t, instr)
    d, a, b, c = instr.operands
    t.define(d, f"n.bfe({t.use(a, dtype)}, {t.use(b, 'u4')}, {t.use(c, 'u4')})", dtype)


def bfi(t, instr):
    dtype = type_of(t, instr)
    d, field, into, start, length = instr.operands
    t.define(d, f"n.bfi({t.use(field, dtype)}, {t.use(into, dtype)}, {t.use(start, 'u4')}, {t.use(length, 'u4')})", dtype)


def prmt(t, instr):
    if len(instr.mods) != 1:
        raise t.unsupported(instr, "a prmt mode")
    d, a, b, selector = instr.operands
    t.define(d, f"n.prmt({t.use(a, 'u4')}, {t.use(b, 'u4')}, {t.use(selector, 'u4')})", "u4")
