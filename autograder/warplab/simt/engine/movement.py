"""Handlers of moves between registers and memory (mov, cvta, ld, st), of fences and of hints."""

from __future__ import annotations

from warplab.simt.engine.generic_addresses import WINDOW
from warplab.simt.ptx.parser import Mem, Sym, Vec
from warplab.simt.ptx.ptx_types import dtype_of

SPACES = {name: name for name in ("global", "shared", "local", "const", "param")} | {
    "shared::cluster": "cluster"
}


def space_of(instr) -> str:
    """The state space among an instruction's modifiers, else "generic"."""
    return next((SPACES[mod] for mod in instr.mods if mod in SPACES), "generic")


def mov(code, instr):
    """``mov``, also from a register to the parts of a vector or back."""
    d, a = instr.operands
    dtype = dtype_of(instr.mods)
    if isinstance(d, Vec):  # unpack: mov.b64 {%r1, %r2}, %rd1
        part = f"u{int(dtype[1]) // len(d.items)}"
        for i, item in enumerate(d.items):
            shift = code.constant(8 * int(part[1]) * i, dtype)
            code.define(item, f"({code.use(a, dtype)} >> {shift}).astype('{part}')", part)
    elif isinstance(a, Vec):  # pack
        part = f"u{int(dtype[1]) // len(a.items)}"
        terms = [
            f"({code.use(item, part)}.astype('{dtype}') << {code.constant(8 * int(part[1]) * i, dtype)})"
            for i, item in enumerate(a.items)
        ]
        code.define(d, " | ".join(terms), dtype)
    else:
        code.define(d, code.use(a, dtype), dtype)


def cvta(code, instr):
    """``cvta``: an address in a state space as a generic one, or with ``.to`` the reverse."""
    d, a = instr.operands
    if space_of(instr) == "param":
        if "to" in instr.mods:
            raise code.unsupported(instr)
        code.define(d, f"memory.parameter({code.use(a, 'u8')})", "u8")
        return
    given, space, to = code.use(a, "u8"), space_of(instr), "to" in instr.mods
    if code.in_clusters and space in ("shared", "cluster"):
        given = f"clusters.{'from_generic' if to else 'to_generic'}(group, {given})"
    elif base := WINDOW.get("shared" if space == "cluster" else space, 0):
        given = f"{given} {'-' if to else '+'} {code.constant(base, 'u8')}"
    code.define(d, given, "u8")


def load(code, instr):
    """``ld`` and ``ldu``, of one register or a vector of them, in every state space."""
    dtype = dtype_of(instr.mods)
    d, address, *_ = instr.operands  # a third operand is a cache policy
    targets = d.items if isinstance(d, Vec) else (d,)
    space = space_of(instr)
    if space == "param":
        for i, item in enumerate(targets):
            offset = address.offset + i * int(dtype[1])
            if isinstance(address.base, Sym):
                got = f"memory.param({address.base.name!r}, {address.base.offset + offset}, '{dtype}')"
            else:
                at = f"{code.site(instr)}, {code.use(address.base, 'u8')}"
                got = f"memory.param_at({at}, {offset}, '{dtype}')"
            code.define(item, got, dtype)
        return
    base, offset = code.base_and_offset(address)
    space = "global" if space == "const" else space
    loaded = f"memory.load(group, {code.site(instr)}, {space!r}, {base}, {offset}, '{dtype}', {len(targets)})"
    if len(targets) == 1:  # braces around one register, {%f1}, change nothing
        code.define(targets[0], loaded, dtype)
        return
    code.emit(f"parts = {loaded}")
    for i, item in enumerate(targets):
        code.define(item, f"parts[{i}]", dtype)


def store(code, instr):
    """``st`` and ``st.async``, of one register or a vector of them."""
    dtype = dtype_of(instr.mods)
    address, value, *_ = instr.operands
    space = space_of(instr)
    if space in ("param", "const") or not isinstance(address, Mem):
        raise code.unsupported(instr)
    base, offset = code.base_and_offset(address)
    values = [code.use(v, dtype) for v in (value.items if isinstance(value, Vec) else (value,))]
    where = f"{code.site(instr)}, {space!r}, {base}, {offset}"
    if "async" in instr.mods:
        bar, at = code.base_and_offset(instr.operands[2])
        stored = f"'{dtype}', ({', '.join(values)},)"
        code.emit(f"bulk_copies.store_async(memory, group, {where}, {stored}, {bar}, {at})")
        return
    code.emit(f"memory.store(group, {where}, '{dtype}', ({', '.join(values)},))")


def nothing(code, instr):
    """The handler of hints, which need no code."""


def cache_policy(code, instr):
    """``createpolicy``: loads and stores ignore its result, as the engine has no cache."""
    code.define(instr.operands[0], code.constant(0, "u8"), "u8")


def fence(code, instr):
    """Fences: the engine's memory is always consistent, but observers are told of them and of their scope."""
    if "proxy" in instr.mods:
        if "async" in instr.mods:
            code.emit("memory.watch(bulk_watch.BulkWatch).fence_proxy(group)")
        return
    wide = bool({"gl", "gpu", "sys", "cluster"} & set(instr.mods))
    if wide or "cta" in instr.mods:
        code.emit(f"memory.fence(group, {wide})")


def isspacep(code, instr):
    """``isspacep``: whether a generic address is in a state space; a block's own shared memory is also in the
    cluster's.
    """
    space, given = space_of(instr), code.use(instr.operands[1], "u8")
    if space in ("shared", "cluster"):
        code.define(instr.operands[0], f"clusters.lies_there(group, {given}, {space == 'shared'})", "?")
        return
    window = code.constant(WINDOW.get(space, 0) >> 60, "u8")
    code.define(instr.operands[0], f"({given} >> {code.constant(60, 'u8')}) == {window}", "?")
