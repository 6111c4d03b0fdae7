"""Code that follows values: each block translated once more, with a statement beside every instruction that
tells a *shadow* which registers it reads and writes.

Blocks run as ``translate`` makes them until an observer wants to follow a value that is just being loaded:
it raises ``StartFollowing`` from ``accessed``. ``follow`` then runs the rest of that block, from the load on,
and the machine the blocks behind it, in this form. The observer brings the shadow, which has the methods that
the statements call (``sanitizer.uninitialised``). A kernel whose values nobody follows pays nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.translate import Translator, compiled
from warplab.simt.observer import StartFollowing
from warplab.simt.ptx.blocks import BasicBlock, is_special, registers_read, registers_written
from warplab.simt.ptx.parser import Instr, Mem, Reg, Vec
from warplab.simt.ptx.ptx_types import dtype_of, last_type

NOTHING = ("bar", "fence", "membar", "nanosleep", "prefetch", "trap")
CARRIED = ("addc", "subc", "madc")
WARP_WIDE = ("activemask", "elect", "match", "mma", "movmatrix", "redux", "vote")


class Followed:
    """A program's blocks as functions that follow values."""

    def __init__(self, program):
        self.program = program
        self.translator = FollowingTranslator(program)
        self.rests: dict[tuple[int, int], object] = {}

    @cached_property
    def functions(self) -> list:
        return compiled(self.translator, self.program.blocks, self.program.blocks)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """Block and position of each instruction, by site; those that a handler made up have none."""
        at = {id(instr): (b.index, i) for b in self.program.blocks for i, instr in enumerate(b.instrs)}
        return {site: at[id(i)] for site, i in enumerate(self.program.sites) if id(i) in at}

    def rest(self, index: int, position: int):
        """The function of a block from one of its instructions on."""
        if (index, position) not in self.rests:
            assert self.functions  # they number the sites
            block = self.program.blocks[index]
            part = replace(block, instrs=block.instrs[position:])
            (self.rests[index, position],) = compiled(self.translator, [part], self.program.blocks)
        return self.rests[index, position]


def follow(machine, group, found: StartFollowing):
    """Do what is left of the block that a load was interrupted in; returns its guard."""
    followed = machine.followed
    index, position = followed.places[found.site]
    known: dict[str, Any] = found.known
    for register in machine.program.function.regs:
        value = known.get(followed.translator.python_name(register))
        if value is not None:
            dtype = followed.translator.canonical(register)
            group.regs[register] = np.atleast_1d(value if dtype == "?" else value.view(dtype))
    if "carry" in known:
        group.regs["$carry"] = known["carry"]
    machine.shadow = found.shadow
    return followed.rest(index, position)(machine.memory, group, group.regs)


class FollowingTranslator(Translator):
    """Emits, before what a handler does, what it means for the shadow."""

    def __init__(self, program):
        super().__init__(program.function, program.symbols, program.name, program.module.files)
        self.program = program
        self.numbers: dict[tuple[int, int], list[int]] = {}

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        self.index, self.given = block.index, {}
        super().block(block, live_out)
        end = len(self.lines)
        if block.end == "branch":
            self._use(block.branch, (block.branch.guard,), "lets it decide a branch", end - 1)
        elif block.end == "barrier" and "red" in block.branch.mods:
            self._use(block.branch, block.branch.operands[-1:], "lets it decide a vote", end)
        return "\n    ".join(["shadow = group.machine.shadow", *self.lines])

    def site(self, instr: Instr) -> int:
        """The number that the site has in the program, also where only the rest of a block is translated."""
        key = self.index, id(self.instr)
        known, nth = self.numbers.setdefault(key, []), self.given.get(key, 0)
        self.given[key] = nth + 1
        if nth == len(known):
            known.append(super().site(instr))
        return known[nth]

    def _use(self, instr: Instr, operands, how: str, line: int | None = None) -> None:
        """Whatever ``operands`` hold matters here."""
        names = _names(operands)
        if names:
            text = f"shadow.matters(group, {names!r}, {how!r}, {self.program.place(instr)!r})"
            self.lines.insert(len(self.lines) if line is None else line, text)

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)

        def followed(code, instr):
            if instr.opcode in CARRIED and not any("carry = " in x for x in self.lines):
                self.emit("carry = registers.get('$carry')")
            after = self._before(instr)
            handler(code, instr)
            if after:
                self.emit(after)

        return followed

    def _before(self, instr: Instr) -> str | None:
        """Emit what the shadow is told before the instruction; what it is told afterwards."""
        opcode, operands = instr.opcode, instr.operands
        read = tuple(sorted(r for r in registers_read(instr, INSTRUCTIONS) if not is_special(r)))
        written = tuple(sorted(registers_written(instr, INSTRUCTIONS)))
        memory = INSTRUCTIONS[opcode].memory
        addresses = [op.base for op in operands if isinstance(op, Mem)]
        if "cc" in instr.mods:
            written += ("$carry",)
        if opcode in CARRIED:
            read += ("$carry",)
        step = f"shadow.computed(group, {written!r}, {read!r})"
        if opcode in NOTHING:
            return None
        if opcode in ("ld", "ldu"):
            self._use(instr, addresses, "takes it for an address")
            self.emit("shadow.begin_load()")
            return f"shadow.loaded(group, {_names(operands[:1], every=True)!r})"
        if opcode == "st":
            self._use(instr, addresses, "takes it for an address")
            values = _names(operands[1:], every=True)
            self.emit(f"shadow.begin_store({values!r}, {self.program.place(instr)!r})")
            return "shadow.begin_store((), '')"
        if opcode == "atom" and "exch" in instr.mods:
            self._use(instr, [Reg(r) for r in read], "feeds an atomic with it")
            self.emit("shadow.begin_load()")
            return f"shadow.loaded(group, {_names(operands[:1], every=True)!r})"
        if memory != "none" or opcode in ("extern", "mbarrier"):
            how = "feeds an atomic with it" if memory == "atomic" else "uses it"
            if not (opcode == "wmma" and memory == "tile" and "mma" in instr.mods):
                self._use(instr, [Reg(r) for r in read], how)
                self.emit(f"shadow.computed(group, {written!r}, ())")
                return None
        if opcode in WARP_WIDE or opcode == "wmma":
            self.emit(f"shadow.of_warp(group, {written!r}, {read!r})")
        elif opcode == "selp":
            self._choice(instr)
        elif opcode == "shfl":
            self._shuffle(instr)
        elif opcode in ("and", "or") or (opcode == "mul" and "lo" in instr.mods):
            self._masked(instr, written)
        elif opcode == "setp" and len(operands) == 4 and instr.mods[1] in ("and", "or"):
            q = self.use(operands[3], "?")
            kills = f"~{q}" if instr.mods[1] == "and" else q
            pair = _names(operands[1:3])
            self.emit(
                f"shadow.masked(group, {written!r}, {pair!r}, {_names(operands[3:])!r}, False, {kills})"
            )
        else:
            self.emit(step)
        return None

    def _choice(self, instr: Instr) -> None:
        d, a, b, p = (_names((op,)) for op in instr.operands)
        self.emit(f"shadow.chosen(group, {d!r}, {a!r}, {b!r}, {p!r}, {self.use(instr.operands[3], '?')})")

    def _shuffle(self, instr: Instr) -> None:
        d, value, b, c, mask = instr.operands
        mode = next(m for m in instr.mods if m in ("up", "down", "bfly", "idx"))
        lanes = f"{self.use(b, 'u4')}, {self.use(c, 'u4')}, {self.use(mask, 'u4')}"
        known = self.numbers.get((self.index, id(self.instr)))
        site = known[0] if known else len(self.memory_sites)  # the next, which the handler is about to take
        names = f"{_names((d,))!r}, {_names((value,))!r}, {_names((b, c))!r}"
        self.emit(f"shadow.shuffled(group, {names}, {mode!r}, {lanes}, {site})")

    def _masked(self, instr: Instr, written) -> None:
        """``and``, ``or`` and products of integers, whose result one operand alone may decide."""
        _, a, b = instr.operands
        kind = last_type(instr.mods)
        dtype = "?" if kind == "pred" else dtype_of(instr.mods)
        kills = {
            ("and", True): "~{0}",
            ("or", True): "{0}",
            ("or", False): "(~{0} == 0)",
        }.get((instr.opcode, dtype == "?"), "({0} == 0)")
        decided = ", ".join(kills.format(self.use(op, dtype)) for op in (a, b))
        self.emit(f"shadow.masked(group, {written!r}, {_names((a,))!r}, {_names((b,))!r}, {decided})")


def _names(operands, every: bool = False) -> tuple:
    """The names of the registers among operands, those of vectors included; ``every``: None for other
    operands.
    """
    flat = [item for op in operands for item in (op.items if isinstance(op, Vec) else (op,))]
    held = [isinstance(op, Reg) and op.name != "_" and not is_special(op.name) for op in flat]
    names = [op.name if is_held else None for op, is_held in zip(flat, held)]
    return tuple(names) if every else tuple(name for name in names if name)
