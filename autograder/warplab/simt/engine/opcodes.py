"""What each PTX instruction does, as NumPy. One handler per opcode; the table at the end is what the engine supports."""

from __future__ import annotations

import numpy as np

from ..ptx.parser import WIDTH, Imm, Instr, Mem, Reg, Sym, Vec

NUMPY = {"s8": "i1", "u8": "u1", "b8": "u1", "s16": "i2", "u16": "u2", "b16": "u2", "s32": "i4", "u32": "u4", "b32": "u4",
         "s64": "i8", "u64": "u8", "b64": "u8", "f16": "f2", "f32": "f4", "f64": "f8", "pred": "?"}
ROUNDINGS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna")


def type_of(t, instr: Instr) -> str:
    """The last type modifier, as a NumPy dtype; an unknown one (bf16, f16x2 ...) is unsupported by name."""
    for mod in reversed(instr.mods):
        if mod in NUMPY:
            return NUMPY[mod]
        if mod in WIDTH:
            raise t.unsupported(instr, f"type .{mod}")
    raise t.unsupported(instr, "no type")


def unsigned(dtype: str) -> str:
    return f"u{dtype[1:]}" if dtype[0] in "iu" else dtype


def _finish_float(t, instr: Instr, expression: str, dtype: str) -> str:
    if "sat" in instr.mods:
        return f"n.saturate({expression})"
    return expression


def directed(t, instr: Instr, dtype: str) -> str | None:
    """The directed rounding of a float instruction, None for to-nearest; float64 has no wider type to round from."""
    rounding = next((m for m in instr.mods if m in ("rz", "rm", "rp")), None)
    if rounding and dtype != "f4":
        raise t.unsupported(instr, "directed rounding")
    return rounding


def _rounded(template: str, operands: list[str], rounding: str) -> str:
    """A float32 operation done in float64 and rounded once in the given direction."""
    wide = [f"{o}.astype('f8')" for o in operands]
    return f"n.float_to_float({template.format(*wide)}, 'f4', {rounding!r})"


def binary(operator: str):
    """add and sub: integers wrap, floats round to nearest unless the instruction says otherwise."""

    def handler(t, instr):
        dtype = type_of(t, instr)
        d, a, b = instr.operands
        if dtype[0] == "f" and (rounding := directed(t, instr, dtype)):
            t.define(d, _rounded(f"({{0}} {operator} {{1}})", [t.use(a, dtype), t.use(b, dtype)], rounding), dtype)
            return
        if dtype[0] != "f" and "sat" in instr.mods:
            raise t.unsupported(instr)
        work = unsigned(dtype)
        t.define(d, _finish_float(t, instr, f"{t.use(a, work)} {operator} {t.use(b, work)}", work), work)

    return handler


def mul(t, instr):
    dtype = type_of(t, instr)
    d, a, b = instr.operands
    if dtype[0] == "f" and (rounding := directed(t, instr, dtype)):
        t.define(d, _rounded("({0} * {1})", [t.use(a, dtype), t.use(b, dtype)], rounding), dtype)
    elif dtype[0] == "f":
        t.define(d, _finish_float(t, instr, f"{t.use(a, dtype)} * {t.use(b, dtype)}", dtype), dtype)
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
        t.define(d, _rounded("({0} * {1} + {2})", [t.use(o, dtype) for o in (a, b, c)], rounding), dtype)
        return
    call = f"n.fma{int(dtype[1]) * 8}({t.use(a, dtype)}, {t.use(b, dtype)}, {t.use(c, dtype)})"
    t.define(d, _finish_float(t, instr, call, dtype), dtype)


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
        t.define(d, _finish_float(t, instr, template.format(t.use(a, dtype)), dtype), dtype)

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
    dtype = type_of(t, instr)
    op = instr.mods[0]
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


def setp(t, instr):
    d, a, b, *rest = instr.operands
    result = compare(t, instr, a, b)
    if rest:
        operator = {"and": "&", "or": "|", "xor": "^"}[instr.mods[1]]
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
    d, a, b = instr.operands
    out = NUMPY[instr.mods[1] if instr.mods[1] in NUMPY else instr.mods[-2]]
    result = compare(t, instr, a, b)
    ones = "np.float32(1)" if out == "f4" else f"np.{np.dtype(out).name}({-1 if out[0] == 'i' else (1 << 8 * int(out[1])) - 1})"
    t.define(d, f"np.where({result}, {ones}, np.{np.dtype(out).name}(0))", out)


def selp(t, instr):
    dtype = type_of(t, instr)
    d, a, b, p = instr.operands
    t.define(d, f"np.where({t.use(p, '?')}, {t.use(a, dtype)}, {t.use(b, dtype)})", dtype)


def mov(t, instr):
    d, a = instr.operands
    dtype = type_of(t, instr)
    if isinstance(d, Vec):  # unpack: mov.b64 {%r1, %r2}, %rd1
        part = f"u{int(dtype[1]) // len(d.items)}"
        for i, item in enumerate(d.items):
            t.define(item, f"({t.use(a, dtype)} >> {t.constant(8 * int(part[1]) * i, dtype)}).astype('{part}')", part)
    elif isinstance(a, Vec):  # pack
        part = f"u{int(dtype[1]) // len(a.items)}"
        terms = [f"({t.use(item, part)}.astype('{dtype}') << {t.constant(8 * int(part[1]) * i, dtype)})" for i, item in enumerate(a.items)]
        t.define(d, " | ".join(terms), dtype)
    else:
        t.define(d, t.use(a, dtype), dtype)


def cvta(t, instr):
    d, a = instr.operands
    base = {"shared": 1 << 60, "local": 1 << 61}.get(next((m for m in instr.mods if m in ("global", "shared", "local", "const", "param")), ""), 0)
    if base and "to" in instr.mods:
        t.define(d, f"{t.use(a, 'u8')} - {t.constant(base, 'u8')}", "u8")
    elif base:
        t.define(d, f"{t.use(a, 'u8')} + {t.constant(base, 'u8')}", "u8")
    else:
        t.define(d, t.use(a, "u8"), "u8")


def cvt(t, instr):
    types = [m for m in instr.mods if m in WIDTH]
    if len(types) != 2 or any(m not in NUMPY for m in types):
        raise t.unsupported(instr, "type")
    to, source = (NUMPY[m] for m in types)
    rounding = next((m for m in instr.mods if m in ROUNDINGS), None)
    d, a = instr.operands
    x = t.use(a, source)
    if source[0] == "f" and to[0] == "f":
        if rounding in (None, "rn"):
            t.define(d, _finish_float(t, instr, f"{x}.astype('{to}')", to), to)
        else:
            t.define(d, _finish_float(t, instr, f"n.float_to_float({x}, '{to}', {rounding!r})", to), to)
    elif source[0] == "f":
        t.define(d, f"n.float_to_int({x}, '{to}', {rounding!r})", to)
    elif to[0] == "f":
        if rounding not in (None, "rn") and not (int(source[1]) < int(to[1])):
            raise t.unsupported(instr, "directed rounding")
        t.define(d, f"n.int_to_float({x}, '{to}', {rounding!r})", to)
    elif "sat" in instr.mods:
        info = np.iinfo(to)
        t.define(d, f"np.clip({x}, {max(info.min, np.iinfo(source).min)}, {min(info.max, np.iinfo(source).max)}).astype('{to}')", to)
    else:
        t.define(d, f"{x}.astype('{to}')", to)


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


def load(t, instr):
    dtype = type_of(t, instr)
    d, address = instr.operands
    space = next((m for m in instr.mods if m in ("global", "shared", "local", "const", "param")), "generic")
    if space == "param":
        if not isinstance(address.base, Sym):
            raise t.unsupported(instr)
        targets = d.items if isinstance(d, Vec) else (d,)
        for i, item in enumerate(targets):
            offset = address.base.offset + address.offset + i * int(dtype[1])
            t.define(item, f"M.param({address.base.name!r}, {offset}, '{dtype}')", dtype)
        return
    base, offset = t.base_and_offset(address)
    site = t.site(instr)
    if isinstance(d, Vec):
        t.emit(f"parts = M.load_{space}(G, {site}, {base}, {offset}, '{dtype}', {len(d.items)})")
        for i, item in enumerate(d.items):
            t.define(item, f"parts[{i}]", dtype)
    else:
        t.define(d, f"M.load_{space}(G, {site}, {base}, {offset}, '{dtype}', 1)", dtype)


def store(t, instr):
    dtype = type_of(t, instr)
    address, value = instr.operands
    space = next((m for m in instr.mods if m in ("global", "shared", "local", "param")), "generic")
    if space == "param" or not isinstance(address, Mem):
        raise t.unsupported(instr)
    base, offset = t.base_and_offset(address)
    values = [t.use(v, dtype) for v in (value.items if isinstance(value, Vec) else (value,))]
    t.emit(f"M.store_{space}(G, {t.site(instr)}, {base}, {offset}, '{dtype}', ({', '.join(values)},))")


ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def atomic(t, instr):
    """``atom`` returns what was there, ``red`` does not."""
    dtype = type_of(t, instr)
    operation = next((m for m in instr.mods if m in ATOMICS), None)
    if operation is None or "noftz" in instr.mods:
        raise t.unsupported(instr)
    space = next((m for m in instr.mods if m in ("global", "shared")), "generic")
    operands = list(instr.operands)
    target = operands.pop(0) if instr.opcode == "atom" else None
    base, offset = t.base_and_offset(operands.pop(0))
    if operation in ("add", "exch", "and", "or", "xor", "cas") and dtype[0] == "i":
        dtype = unsigned(dtype)
    sources = [t.use(o, dtype) for o in operands]
    compare, value = (sources[0], sources[1]) if operation == "cas" else ("None", sources[0])
    wanted = target is not None and not (isinstance(target, Reg) and target.name == "_")
    call_ = f"M.atomic(G, {t.site(instr)}, {space!r}, {base}, {offset}, '{dtype}', {operation!r}, {value}, {compare}, {wanted})"
    if wanted:
        t.define(target, call_, dtype)
    else:
        t.emit(call_)


def shfl(t, instr):
    d, value, b, c, _mask = instr.operands
    mode = next(m for m in instr.mods if m in ("up", "down", "bfly", "idx"))
    t.emit(f"got = w.shuffle(G.table, {mode!r}, {t.use(value, 'u4')}, {t.use(b, 'u4')}, {t.use(c, 'u4')})")
    targets = d.items if isinstance(d, Vec) else (d,)
    t.define(targets[0], "got[0]", "u4")
    if len(targets) > 1:
        t.define(targets[1], "got[1]", "?")


def vote(t, instr):
    d, flag, *mask = instr.operands
    mode = next(m for m in instr.mods if m in ("all", "any", "uni", "ballot"))
    members = t.use(mask[0], "u4") if mask else t.constant(0xFFFFFFFF, "u4")
    t.define(d, f"w.vote(G.table, {mode!r}, {t.use(flag, '?')}, {members})", "u4" if mode == "ballot" else "?")


def match(t, instr):
    d, value, mask = instr.operands
    dtype = type_of(t, instr)
    if "any" in instr.mods:
        t.define(d, f"w.match_any(G.table, {t.use(value, dtype)}, {t.use(mask, 'u4')})", "u4")
        return
    t.emit(f"got = w.match_all(G.table, {t.use(value, dtype)}, {t.use(mask, 'u4')})")
    targets = d.items if isinstance(d, Vec) else (d,)
    t.define(targets[0], "got[0]", "u4")
    if len(targets) > 1:
        t.define(targets[1], "got[1]", "?")


def redux(t, instr):
    dtype = type_of(t, instr)
    d, value, mask = instr.operands
    operation = next(m for m in instr.mods if m in ATOMICS)
    t.define(d, f"w.reduce_(G.table, {operation!r}, {t.use(value, dtype)}, {t.use(mask, 'u4')})", dtype)


def activemask(t, instr):
    t.define(instr.operands[0], "G.table.bits(np.ones(1, bool))[G.row]", "u4")


def nothing(t, instr):
    """Fences and hints: the engine's memory is always up to date."""


def warp_barrier(t, instr):
    if "warp" not in instr.mods:
        raise t.unsupported(instr)
    t.emit("M.warp_barrier(G)")


def call(t, instr):
    raise t.unsupported(instr, "a call to a device function that was not inlined")


HANDLERS = {
    "add": with_carry(binary("+"), "add"), "sub": with_carry(binary("-"), "sub"), "mad": with_carry(mad, "mad"), "mul": mul, "fma": fma,
    "addc": carried("add", takes=True), "subc": carried("sub", takes=True), "madc": carried("mad", takes=True), "div": div, "rem": rem,
    "abs": unary("np.abs({0})"), "neg": unary("np.negative({0})"), "min": minmax("min"), "max": minmax("max"),
    "and": logic("&"), "or": logic("|"), "xor": logic("^"), "not": unary("~{0}"), "lop3": lop3,
    "shl": shift("left"), "shr": shift("right"), "shf": shf, "bfe": bfe, "bfi": bfi, "prmt": prmt,
    "popc": lambda t, i: t.define(i.operands[0], f"n.popc({t.use(i.operands[1], type_of(t, i))})", "u4"),
    "clz": lambda t, i: t.define(i.operands[0], f"n.clz({t.use(i.operands[1], unsigned(type_of(t, i)))})", "u4"),
    "brev": unary("n.brev({0})", floats=False),
    "setp": setp, "set": set_, "selp": selp, "mov": mov, "cvt": cvt, "cvta": cvta, "copysign": copysign, "testp": testp,
    "sqrt": rounded_function("np.sqrt({0})"), "rcp": rounded_function("(np.ones(1, '{1}') / {0})"), "rsqrt": approximate("n.rsqrt"),
    "ex2": approximate("np.exp2"), "lg2": approximate("np.log2"), "sin": approximate("np.sin"), "cos": approximate("np.cos"), "tanh": approximate("np.tanh"),
    "atom": atomic, "red": atomic, "shfl": shfl, "vote": vote, "match": match, "redux": redux, "activemask": activemask,
    "ld": load, "ldu": load, "st": store, "bar": warp_barrier, "membar": nothing, "fence": nothing,
    "nanosleep": nothing, "prefetch": nothing, "call": call,
}
