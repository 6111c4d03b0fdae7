"""Handlers of exchanges within a warp: shfl, vote, match, redux, elect, activemask (executed by ``warp``)."""

from __future__ import annotations

from warplab.simt.engine import warp
from warplab.simt.engine.loadstore import ALL_LANES
from warplab.simt.ptx.parser import Imm, Vec
from warplab.simt.ptx.ptx_types import dtype_of


def shfl(code, instr):
    d, *lanes = instr.operands
    mode = next(m for m in instr.mods if m in ("up", "down", "bfly", "idx"))
    operands = ", ".join(code.use(operand, "u4") for operand in lanes)
    site = _checks_mask(code, instr, lanes[-1])
    code.emit(f"got = memory.shuffle(group, {site}, {mode!r}, {operands})")
    _define_with_predicate(code, d)


def _checks_mask(code, instr, mask) -> int:
    """Emit the check whether the member mask fits the lanes; returns the instruction's site."""
    site = code.site(instr)
    whole = "if not group.full: " if is_full(mask) else ""
    code.emit(f"{whole}memory.check_members(group, {code.use(mask, 'u4')}, {site})")
    return site


def is_full(mask) -> bool:
    """Whether the operand is a literal member mask of all lanes of a warp."""
    value = mask.value if isinstance(mask, Imm) else None
    return isinstance(value, int) and value & ALL_LANES == ALL_LANES


def _define_with_predicate(code, d) -> None:
    """Define ``d`` or ``d|p``: the value, and the predicate."""
    value, *predicate = d.items if isinstance(d, Vec) else (d,)
    code.define(value, "got[0]", "u4")
    if predicate:
        code.define(predicate[0], "got[1]", "?")


def vote(code, instr):
    d, flag, *mask = instr.operands
    mode = next(m for m in instr.mods if m in ("all", "any", "uni", "ballot"))
    members = code.use(mask[0], "u4") if mask else code.constant(0xFFFFFFFF, "u4")
    if mask:
        _checks_mask(code, instr, mask[0])
    dtype = "u4" if mode == "ballot" else "?"
    code.define(d, f"warp.vote(group.table, {mode!r}, {code.use(flag, '?')}, {members})", dtype)


def match(code, instr):
    d, value, mask = instr.operands
    dtype = dtype_of(instr.mods)
    _checks_mask(code, instr, mask)
    if "any" in instr.mods:
        code.define(d, f"warp.match_any(group.table, {code.use(value, dtype)}, {code.use(mask, 'u4')})", "u4")
        return
    code.emit(f"got = warp.match_all(group.table, {code.use(value, dtype)}, {code.use(mask, 'u4')})")
    _define_with_predicate(code, d)


def redux(code, instr):
    dtype = dtype_of(instr.mods)
    d, value, mask = instr.operands
    operation = next(m for m in instr.mods if m in warp.REDUCTIONS)
    _checks_mask(code, instr, mask)
    operands = f"{code.use(value, dtype)}, {code.use(mask, 'u4')}"
    code.define(d, f"warp.reduce_(group.table, {operation!r}, {operands})", dtype)


def elect(code, instr):
    """``elect.sync d|p, mask``: d is the lowest lane of the mask; p is true in that lane."""
    d, mask = instr.operands
    lane, chosen = d.items if isinstance(d, Vec) else (d, None)
    _checks_mask(code, instr, mask)
    code.emit(f"mask = np.broadcast_to({code.use(mask, 'u4')}, (group.size,))")
    code.emit("got = np.bitwise_count((mask & (~mask + np.uint32(1))) - np.uint32(1)).astype('u4')")
    code.define(lane, "got", "u4")
    if chosen is not None:
        code.define(chosen, "group.column == got", "?")


def activemask(code, instr):
    code.define(instr.operands[0], "group.table.bits(np.ones(1, bool))[group.row]", "u4")
