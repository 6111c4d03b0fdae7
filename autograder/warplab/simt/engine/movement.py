"""Instructions that move data: mov, cvt, loads, stores, atomics, and the exchanges between lanes of a warp."""

from __future__ import annotations

import numpy as np

from ..ptx.parser import WIDTH, Mem, Reg, Sym, Vec
from . import eighths
from .halves import BITS, convert, kind_of
from .types import NUMPY, ROUNDINGS, saturated, type_of, unsigned


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
    base = {"shared": 1 << 60, "local": 1 << 61}.get(
        next((m for m in instr.mods if m in ("global", "shared", "local", "const", "param")), ""), 0
    )
    if base and "to" in instr.mods:
        t.define(d, f"{t.use(a, 'u8')} - {t.constant(base, 'u8')}", "u8")
    elif base:
        t.define(d, f"{t.use(a, 'u8')} + {t.constant(base, 'u8')}", "u8")
    else:
        t.define(d, t.use(a, "u8"), "u8")


def cvt(t, instr):
    if eighths.convert(t, instr) or convert(t, instr):
        return
    types = [m for m in instr.mods if m in WIDTH]
    if len(types) != 2 or any(m not in NUMPY for m in types):
        raise t.unsupported(instr, "type")
    to, source = (NUMPY[m] for m in types)
    rounding = next((m for m in instr.mods if m in ROUNDINGS), None)
    d, a = instr.operands
    x = t.use(a, source)
    if source[0] == "f" and to[0] == "f":
        if rounding in (None, "rn"):
            t.define(d, saturated(t, instr, f"{x}.astype('{to}')", to), to)
        else:
            t.define(d, saturated(t, instr, f"n.float_to_float({x}, '{to}', {rounding!r})", to), to)
    elif source[0] == "f":
        t.define(d, f"n.float_to_int({x}, '{to}', {rounding!r})", to)
    elif to[0] == "f":
        if rounding not in (None, "rn"):
            t.define(d, f"n.float_to_float({x}.astype('g'), '{to}', {rounding!r})", to)  # 'g' holds 64-bit integers
        else:
            t.define(d, f"n.int_to_float({x}, '{to}', {rounding!r})", to)
    elif "sat" in instr.mods:
        info = np.iinfo(to)
        t.define(d, f"np.clip({x}, {max(info.min, np.iinfo(source).min)}, {min(info.max, np.iinfo(source).max)}).astype('{to}')", to)
    else:
        t.define(d, f"{x}.astype('{to}')", to)


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
    operation = next((m for m in instr.mods if m in ATOMICS), None)
    half = kind_of(instr)
    if operation is None or (half and operation != "add"):
        raise t.unsupported(instr)
    if half:
        dtype, operation = BITS[half], f"add.{half}"
    else:
        dtype = type_of(t, instr)
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


def elect(t, instr):
    """``elect.sync d|p, mask``: the lowest lane of the mask; p holds in that lane."""
    d, mask = instr.operands
    lane, chosen = d.items if isinstance(d, Vec) else (d, None)
    t.emit(f"mask = np.broadcast_to({t.use(mask, 'u4')}, (G.size,))")
    t.emit("got = np.bitwise_count((mask & (~mask + np.uint32(1))) - np.uint32(1)).astype('u4')")
    t.define(lane, "got", "u4")
    if chosen is not None:
        t.define(chosen, "G.column == got", "?")


def activemask(t, instr):
    t.define(instr.operands[0], "G.table.bits(np.ones(1, bool))[G.row]", "u4")


def nothing(t, instr):
    """Hints."""


def fence(t, instr):
    """The engine's memory is always up to date; the sanitizer wants to know of fences for the whole device."""
    if {"gl", "gpu", "sys"} & set(instr.mods):
        t.emit("M.fence(G)")


def warp_barrier(t, instr):
    if "warp" not in instr.mods:
        raise t.unsupported(instr)
    t.emit("M.warp_barrier(G)")


def call(t, instr):
    raise t.unsupported(instr, "a call to a device function that was not inlined")


def recurse(t, instr):
    """A call of a recursive function, which the machine runs for these lanes alone: ``recurse.<name> {results}, arguments...``."""
    target, *arguments = instr.operands
    name = instr.mods[0]
    parameters, results_ = t.fn.routines[name]
    given = "".join(f"{t.use(a, t.canonical(p))}, " for a, p in zip(arguments, parameters, strict=True))
    t.emit(f"got = M.machine.call(G, {name!r}, {parameters!r}, ({given}), {results_!r}, {t.site(instr)})")
    for i, item in enumerate(target.items):
        t.define(item, f"got[{i}]", t.canonical(item.name))


def results(t, instr):
    """The end of a recursive function: its results stay in registers for the caller to take."""
    for register in instr.operands:
        t.emit(f"R[{register.name!r}] = {t.use(register, t.canonical(register.name))}")
