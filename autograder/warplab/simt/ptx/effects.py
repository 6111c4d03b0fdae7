"""The facts of an instruction that control flow, counters and checks need without executing it.

The grammar (``ptx.parser``) knows no opcodes. The table of instructions is in a higher layer, beside the
functions that execute them (``engine.instructions``); ``ptx.blocks`` and ``ptx.stored`` get it as an
argument, a mapping from opcodes to ``Effects``. A fact that depends on an instruction's modifiers is a
condition on the instruction: ``always``, ``never``, ``when("red")``, ``unless("store")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from warplab.simt.ptx.parser import Instr
from warplab.simt.ptx.ptx_types import TYPES, last_type

Condition = Callable[[Instr], bool]
Flops = Callable[[Instr], int]
Memory = Literal["none", "load", "store", "atomic", "copy", "tile"]


def always(instr: Instr) -> bool:
    return True


def never(instr: Instr) -> bool:
    return False


def when(*mods: str) -> Condition:
    """A condition: the instruction has one of these modifiers."""
    return lambda instr: any(mod in instr.mods for mod in mods)


def unless(*mods: str) -> Condition:
    """A condition: the instruction has none of these modifiers."""
    return lambda instr: not any(mod in instr.mods for mod in mods)


def no_flops(instr: Instr) -> int:
    return 0


def flops(of_value: int) -> Flops:
    """``of_value`` operations for each float in the instruction's type: an f16x2 has two, an s32 none."""

    def count(instr: Instr) -> int:
        named = last_type(instr.mods)
        return of_value * TYPES[named].count if named and TYPES[named].is_float else 0

    return count


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Facts of one opcode; the defaults are those of an instruction that computes.

    ``writes``: whether the first operand (a register, or a vector of them) is a destination. ``updates``:
    whether the destination's old value is read as well. ``flops``: floating-point operations of one lane, an
    FMA being 2. ``polls``: whether spinning threads poll with it, which the machine's step budget counts.
    ``barrier``: whether it is a barrier of the thread block, cluster or grid, which ends a basic block.
    ``memory``: how it accesses memory; for "tile" the modifiers decide between load, store and neither.
    """

    writes: Condition = always
    updates: Condition = never
    flops: Flops = no_flops
    polls: Condition = never
    barrier: Condition = never
    memory: Memory = "none"


UNKNOWN = Effects()
EffectsByOpcode = Mapping[str, Effects]


def effects_of(instr: Instr, table: EffectsByOpcode) -> Effects:
    """The row of an instruction; the defaults for an unknown opcode, which translation refuses by name."""
    return table.get(instr.opcode, UNKNOWN)
