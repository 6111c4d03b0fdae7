"""Which arrays a kernel may touch, read off its PTX:
the parameters and variables that the addresses of its stores, loads or atomics come from.
"""

from __future__ import annotations

from typing import Literal

from warplab.simt.ptx.blocks import is_special, loads_parameter, registers_read, registers_written
from warplab.simt.ptx.dataflow import register_facts
from warplab.simt.ptx.effects import EffectsByOpcode, effects_of
from warplab.simt.ptx.parser import Function, Instr, Mem, Reg, Sym, Vec

Origin = tuple[str, int]  # a parameter or variable and a byte offset in it
Way = Literal["store", "load", "atomic"]
WAYS: tuple[Way, ...] = ("store", "load", "atomic")


def touched_through(fn: Function, table: EffectsByOpcode) -> dict[Way, list[frozenset[Origin]] | None]:
    """By way, for each store (load, atomic) to global or generic memory, what its address was computed from;
    None where that cannot be told.

    A value loaded from memory has no origin: added to a pointer it is an index, alone it is an unknown
    pointer.
    """
    if fn.routines:
        return dict.fromkeys(WAYS)
    body = [item for item in fn.body if isinstance(item, Instr)]
    origin = register_facts((registers_written(i, table), _sources(i, table), _origins(i)) for i in body)
    return {way: [_of_address(i, origin) for i in body if _touches(i, table, way)] for way in WAYS}


def _touches(instr: Instr, table: EffectsByOpcode, way: str) -> bool:
    memory = effects_of(instr, table).memory
    if memory == "tile":  # wmma: the form decides
        memory = next((mod for mod in ("load", "store") if mod in instr.mods), "none")
    if memory == "copy":
        memory = "load" if any(isinstance(op, Mem) for op in instr.operands) else "none"
        return way == memory
    elsewhere = {"shared", "local", "param", "const"} & {mod.split("::")[0] for mod in instr.mods}
    return memory == way and not elsewhere


def _sources(instr: Instr, table: EffectsByOpcode) -> set[str]:
    if instr.opcode == "setp" or effects_of(instr, table).memory in ("load", "atomic"):
        return set()
    return {r for r in registers_read(instr, table) if not is_special(r)}


def _origins(instr: Instr) -> frozenset[Origin]:
    if loads_parameter(instr):
        base = instr.operands[1].base
        parts = len(instr.operands[0].items) if isinstance(instr.operands[0], Vec) else 1
        return frozenset((base.name, base.offset + instr.operands[1].offset + 8 * i) for i in range(parts))
    if instr.opcode == "ld":
        return frozenset()
    return frozenset((op.name, 0) for op in instr.operands if isinstance(op, Sym))


def _of_address(instr: Instr, origin) -> frozenset[Origin]:
    address = [op for op in instr.operands if isinstance(op, Mem)][-1]  # a copy's source is its second
    if isinstance(address.base, Sym):
        return frozenset({(address.base.name, 0)})
    return origin.get(address.base.name, frozenset()) if isinstance(address.base, Reg) else frozenset()
