"""What control flow, counters and checks must know of an instruction without executing it.

The grammar (``ptx.parser``) knows no opcode. The table of instructions stands above it, with the functions
that execute them (``engine.instructions``), and is given as data, a mapping from opcodes to ``Effects``, to
what needs it here: ``ptx.blocks`` and ``ptx.stored``. Where a fact depends on an instruction's modifiers it
is a condition on the instruction: ``always``, ``never``, ``when("red")``, ``unless("store")``.
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
    """True of an instruction with one of these modifiers."""
    return lambda instr: any(mod in instr.mods for mod in mods)


def unless(*mods: str) -> Condition:
    """True of an instruction with none of these modifiers."""
    return lambda instr: not any(mod in instr.mods for mod in mods)


def no_flops(instr: Instr) -> int:
    return 0


def flops(of_value: int) -> Flops:
    """So many operations for each float of the instruction's type: two values in an f16x2, none in an s32."""

    def count(instr: Instr) -> int:
        named = last_type(instr.mods)
        return of_value * TYPES[named].count if named and TYPES[named].is_float else 0

    return count


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Facts of one opcode; the defaults are those of an instruction that computes.

    ``writes``: whether the first operand (a register, or a vector of them) is a destination. ``updates``:
    whether what was in it is read first. ``flops``:
    floating-point operations of one lane, an FMA being 2. ``polls``: whether a thread that spins looks again
    with it, which costs the machine's patience. ``barrier``: whether it ends a basic block at a barrier of
    the thread block or the grid. ``memory``: how it touches memory; "tile" where the form decides between
    load, store and neither.
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
    """The row of an instruction.

    Of one that the table has not, which will be refused by name, the commonest facts.
    """
    return table.get(instr.opcode, UNKNOWN)
