"""The arrays that a kernel may write, found in its PTX: the parameters and variables from which the addresses
of its stores and atomics are computed.
"""

from __future__ import annotations

from warplab.simt.ptx.blocks import is_special, loads_parameter, registers_read, registers_written
from warplab.simt.ptx.dataflow import register_facts
from warplab.simt.ptx.effects import EffectsByOpcode, effects_of
from warplab.simt.ptx.parser import Function, Instr, Mem, Reg, Sym, Vec

Origin = tuple[str, int]  # a parameter or variable and a byte offset in it


def written_through(fn: Function, table: EffectsByOpcode) -> list[frozenset[Origin]] | None:
    """For each store and atomic to global or generic memory, the origins of its address. None for a kernel
    with recursive functions, which this analysis does not follow.

    A value loaded from memory has no origin: added to a pointer it is an index; alone it is an unknown
    pointer, whose set of origins is empty.
    """
    if fn.routines:
        return None
    body = [item for item in fn.body if isinstance(item, Instr)]
    origin = register_facts((registers_written(i, table), _sources(i, table), _origins(i)) for i in body)
    return [_of_address(i, origin) for i in body if _writes(i, table)]


def _writes(instr: Instr, table: EffectsByOpcode) -> bool:
    memory = effects_of(instr, table).memory
    elsewhere = {"shared", "local", "param", "const"} & {mod.split("::")[0] for mod in instr.mods}
    writes = memory in ("store", "atomic") or (memory == "tile" and "store" in instr.mods)
    return writes and not elsewhere


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
    address = next(op for op in instr.operands if isinstance(op, Mem))
    if isinstance(address.base, Sym):
        return frozenset({(address.base.name, 0)})
    return origin.get(address.base.name, frozenset()) if isinstance(address.base, Reg) else frozenset()
