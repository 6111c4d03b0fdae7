"""A program in two parts: what a launch computes without looking at memory, and what it does with memory.

*Early* are the instructions whose results follow from the grid, the block and the parameters; *late* are
loads, what is computed from loaded values, and stores. Only kernels whose branches and addresses are all
early, and which store nothing that is, come apart: those with atomics, barriers, variables, exchanges within
a warp or shared and local memory do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from warplab.simt.engine.following import CARRIED, WARP_WIDE
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.program import Program
from warplab.simt.engine.translate import Translator, compiled
from warplab.simt.ptx.blocks import BasicBlock, is_special, loads_parameter, registers_read, registers_written
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr, Mem, Reg, Sym, Vec
from warplab.simt.ptx.ptx_types import TYPES, dtype_of

NOT_ALONE = {*CARRIED, *WARP_WIDE, "shfl", "extern", "recurse", "createpolicy"}
PASSED_ON = {"mov", "cvta", "add"}  # what a pointer may go through and stay one
ADDRESSES = {"u64", "s64", "b64"}
PLAIN = {"global", "nc", "v2", "v4", "v8", *TYPES}  # modifiers
Parameter = tuple[str, int, int]  # its name, an offset in it, and how many bytes are loaded


class CannotSplit(Exception):
    """A program does not come apart, or a launch of it does not."""


class EarlyAndLate:
    """The two parts of a program. Raises CannotSplit where addresses, branches or other threads depend on
    memory.
    """

    def __init__(self, program: Program):
        self.program, blocks = program, program.blocks
        self.refused: set[tuple] = set()  # kinds of launches that do not
        self.instrs = [i for b in blocks for i in b.instrs]
        if program.routines or any(b.end == "barrier" or b.polls for b in blocks):
            raise CannotSplit
        if not all(loads_parameter(i) or _touches(i) or _computes(i) for i in self.instrs):
            raise CannotSplit
        self.late = self._late()
        for instr in filter(_touches, self.instrs):
            address, stored = _address_and_stored(instr)
            if address in self.late or not stored <= self.late:
                raise CannotSplit
        for instr in filter(self.is_late, self.instrs):
            if any(map(is_special, registers_read(instr, INSTRUCTIONS))):
                raise CannotSplit
        guards = [b.branch.guard for b in blocks if b.branch is not None]
        if any(guard is not None and guard.name in self.late for guard in guards):
            raise CannotSplit
        self.parameters = self._parameters()
        if not {name for name, _, _ in self.parameters} <= {p.name for p in program.function.params}:
            raise CannotSplit

    @cached_property
    def early_functions(self) -> list:
        return compiled(_EarlyTranslator(self), self.program.blocks, self.program.blocks)

    @cached_property
    def late_functions(self) -> list:
        return compiled(_LateTranslator(self), self.program.blocks, self.program.blocks)

    def is_late(self, instr: Instr) -> bool:
        return _touches(instr) or not self.late.isdisjoint(registers_written(instr, INSTRUCTIONS))

    def early_of(self, instr: Instr) -> list[str]:
        """The early registers that a late instruction reads."""
        if _touches(instr):
            return []
        return sorted(registers_read(instr, INSTRUCTIONS) - self.late)

    def _late(self) -> set[str]:
        """The registers that hold what was loaded, or is computed from it."""
        late: set[str] = set()
        size = -1
        while size != len(late):
            size = len(late)
            for instr in self.instrs:
                if _touches(instr) or not late.isdisjoint(registers_read(instr, INSTRUCTIONS)):
                    late |= registers_written(instr, INSTRUCTIONS)
        return late

    def _parameters(self) -> dict[Parameter, bool]:
        """What is loaded of the parameters, and whether it is a pointer that is only ever added to."""
        loaded = [p for i in filter(loads_parameter, self.instrs) for _, p in _loaded_by(i)]
        values = {parameter for parameter in loaded if parameter[2] != 8}
        while True:
            origins = self._origins(values)
            used = set().union(*(_as_numbers(instr, origins) for instr in self.instrs))
            if used <= values:
                return {parameter: parameter not in values for parameter in loaded}
            values |= used

    def _origins(self, values: set[Parameter]) -> dict[str, set[Parameter]]:
        """By register, the parameters that the address in it may come from, but for those in ``values``."""
        origins: dict[str, set[Parameter]] = {}
        size = -1
        while size != sum(map(len, origins.values())):
            size = sum(map(len, origins.values()))
            for instr in self.instrs:
                if loads_parameter(instr):
                    for register, parameter in _loaded_by(instr):
                        origins.setdefault(register, set()).update({parameter} - values)
                elif instr.opcode in PASSED_ON:
                    read = registers_read(instr, INSTRUCTIONS)
                    for register in registers_written(instr, INSTRUCTIONS):
                        found = origins.setdefault(register, set())
                        found.update(*(origins.get(r, ()) for r in read))
        return origins


def _touches(instr: Instr) -> bool:
    """Whether an instruction is a plain load from global memory or a plain store to it."""
    return instr.opcode in ("ld", "st") and "global" in instr.mods and PLAIN.issuperset(instr.mods)


def _computes(instr: Instr) -> bool:
    """Whether an instruction computes registers of a lane from registers of that lane."""
    row = effects_of(instr, INSTRUCTIONS)
    alone = row.memory == "none" and not row.barrier(instr) and instr.opcode not in NOT_ALONE
    return (
        alone
        and row.writes(instr)
        and "cc" not in instr.mods
        and not any(isinstance(operand, Sym) for operand in instr.operands)
    )


def _address_and_stored(instr: Instr) -> tuple[str, set[str]]:
    """The register with the address of a load or store, and the registers that are stored."""
    address = instr.operands[1 if instr.opcode == "ld" else 0]
    if not isinstance(address, Mem) or not isinstance(address.base, Reg):
        raise CannotSplit
    value = instr.operands[1] if instr.opcode == "st" else None
    items = value.items if isinstance(value, Vec) else (value,)
    return address.base.name, {item.name for item in items if isinstance(item, Reg)}


def _loaded_by(instr: Instr) -> Iterator[tuple[str, Parameter]]:
    """The registers that a load of a parameter fills, and with what."""
    target, address, *_ = instr.operands
    width = int(dtype_of(instr.mods)[1:])
    for i, item in enumerate(target.items if isinstance(target, Vec) else (target,)):
        yield item.name, (address.base.name, address.base.offset + address.offset + i * width, width)


def _as_numbers(instr: Instr, origins: dict[str, set[Parameter]]) -> set[Parameter]:
    """The parameters among ``origins`` that an instruction takes for numbers: it does more than add."""
    if _touches(instr):
        read = _address_and_stored(instr)[1]
    else:
        read = registers_read(instr, INSTRUCTIONS)
        pointers = [op for op in instr.operands[1:] if isinstance(op, Reg) and origins.get(op.name)]
        if instr.opcode in PASSED_ON and instr.mods[-1] in ADDRESSES and len(pointers) < 2:
            if instr.opcode != "mov" or not any(isinstance(op, Vec) for op in instr.operands):
                return set()
    return set().union(*(origins.get(register, set()) for register in read))


class _PartTranslator(Translator):
    """Emits for early and late instructions what its subclasses say."""

    def __init__(self, parts: EarlyAndLate):
        program = parts.program
        super().__init__(program.function, program.symbols, program.name, program.module.files)
        self.parts = parts


class _EarlyTranslator(_PartTranslator):
    """Emits what is early, and in the place of a late instruction what that needs of it."""

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)
        return (lambda code, instr: self._keep(instr)) if self.parts.is_late(instr) else handler

    def _keep(self, instr: Instr) -> None:
        if _touches(instr):
            address, value = instr.operands[:2] if instr.opcode == "st" else instr.operands[1::-1]
            base, offset = self.base_and_offset(address)
            count = len(value.items) if isinstance(value, Vec) else 1
            self.emit(f"memory.place(group, {base}, {offset}, {dtype_of(instr.mods)!r}, {count})")
            return
        for register in self.parts.early_of(instr):
            self.emit(f"memory.keep({self.use(Reg(register), self.canonical(register))})")


class _LateTranslator(_PartTranslator):
    """Emits what is late. The functions' second argument, ``group``, is what the early ones have kept."""

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        self.taken = 0
        return super().block(replace(block, end="fall", branch=None), live_out)

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)

        def late(code, instr):
            if not self.parts.is_late(instr):
                return
            if _touches(instr):
                self._touch(instr)
                return
            for register in self.parts.early_of(instr):
                variable = self.python_name(register)
                self.emit(f"{variable} = {self._next_kept()}")
                self.local[register] = variable, self.canonical(register)
            handler(code, instr)

        return late

    def _next_kept(self) -> str:
        self.taken += 1
        return f"group[{self.taken - 1}]"

    def _touch(self, instr: Instr) -> None:
        dtype = dtype_of(instr.mods)
        value = instr.operands[1 if instr.opcode == "st" else 0]
        items = value.items if isinstance(value, Vec) else (value,)
        if instr.opcode == "st":
            values = ", ".join(self.use(item, dtype) for item in items)
            self.emit(f"memory.store({self._next_kept()}, ({values},))")
            return
        self.emit(f"parts = memory.load({self._next_kept()})")
        for i, item in enumerate(items):
            self.define(item, f"parts[{i}]", dtype)
