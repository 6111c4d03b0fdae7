"""A program in two parts: what launches alike have in common, and what each does with its own numbers.

*Early* are the instructions whose results follow from the grid, the block, the parameters and the contents of
the arrays that addresses are computed from (shapes, strides, indices); *late* are the other loads, what is
computed from loaded values, and stores. Kernels come apart whose addresses are all early. A branch may be
late only by way of loaded floats: which way it went is then part of what launches have in common. Kernels
with instructions of tensor cores, asynchronous copies, functions that the engine has itself or recursion do
not come apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from warplab.simt.engine.following import CARRIED
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.movement import space_of
from warplab.simt.engine.program import Program
from warplab.simt.engine.translate import Translator, compiled
from warplab.simt.ptx.blocks import BasicBlock, is_special, loads_parameter, registers_read, registers_written
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr, Mem, Reg, Sym, Vec
from warplab.simt.ptx.ptx_types import TYPES, dtype_of, last_type

OF_WARP = {"activemask", "elect", "match", "redux", "shfl", "vote"}
NOT_ALONE = {
    *CARRIED,
    *("mma", "movmatrix", "mbarrier", "extern", "recurse", "results", "createpolicy", "trap", "call"),
}
SILENT = {"bar", "barrier", "fence", "membar", "nanosleep", "prefetch"}  # they change no register
PASSED_ON = {"mov", "cvta", "add"}  # what a pointer may go through and stay one
ADDRESSES = {"u64", "s64", "b64"}
SHIFTED = PASSED_ON | {"or"}  # what an address may go through and stay in its memory
PLAIN = {"global", "nc", "shared", "local", "v2", "v4", "v8", *TYPES}  # modifiers of loads and stores
OWN = ("shared", "local")  # memory that a launch begins with unwritten
Parameter = tuple[str, int, int]  # its name, an offset in it, and how many bytes are loaded


class CannotSplit(Exception):
    """A program does not come apart."""


@dataclass(frozen=True)
class _Access:
    """A plain load, a plain store or an atomic: ``way`` is "load", "store" or "atomic". ``stored`` are the
    registers that it puts into memory or compares with it. ``generic``: it names no memory; its address seems
    to lie in ``space``.
    """

    space: str
    way: str
    address: Mem
    stored: set[str]
    is_float: bool
    generic: bool

    @property
    def base(self) -> set[str]:
        """The register of the address, none where it is a constant."""
        return {self.address.base.name} if isinstance(self.address.base, Reg) else set()


class _Step:
    """What must be known of an instruction. Raises CannotSplit where it is one that cannot be split off."""

    def __init__(self, instr: Instr, windows: dict[str, set[str]]):
        self.instr, self.access = instr, _access(instr, windows)
        self.read, self.written = registers_read(instr, INSTRUCTIONS), registers_written(instr, INSTRUCTIONS)
        self.parameters = dict(_loaded_by(instr)) if loads_parameter(instr) else {}
        row = effects_of(instr, INSTRUCTIONS)
        alone = row.memory == "none" and instr.opcode not in NOT_ALONE and "cc" not in instr.mods
        computes = alone and (row.writes(instr) or instr.opcode in SILENT)
        if not (self.parameters or self.access or computes):
            raise CannotSplit


class EarlyAndLate:
    """The two parts of a program. Raises CannotSplit where there are no two."""

    def __init__(self, program: Program):
        self.program, blocks = program, program.blocks
        self.barriers = [
            b.branch for b in blocks if b.end in ("barrier", "syncwarp") and b.branch is not None
        ]
        if program.routines or any("red" in barrier.mods for barrier in self.barriers):
            raise CannotSplit
        windows = _windows([i for b in blocks for i in b.instrs])
        self.steps = {id(i): _Step(i, windows) for b in blocks for i in b.instrs}
        self.accesses = [step for step in self.steps.values() if step.access]
        self.needed = self._needed()
        self.late, self.late_memory = self._late()
        if not self.late.isdisjoint(self._places()):
            raise CannotSplit
        late = [step for step in self.steps.values() if self.is_late(step.instr)]
        if any(map(is_special, set().union(*(step.read for step in late)))):
            raise CannotSplit
        shuffles = [step.instr for step in late if step.instr.opcode == "shfl"]
        lanes = {op.name for instr in shuffles for op in instr.operands[2:] if isinstance(op, Reg)}
        if not self.late.isdisjoint(lanes):  # which lanes take part is looked at once
            raise CannotSplit
        values, self.origins = self._numbers()
        # the parameters on both sides of a sum: in a launch those of one side at most may be pointers
        self.sums = [
            (frozenset(self.origins[a]), frozenset(self.origins[b]))
            for a, b in (_summands(step, self.origins) for step in self.steps.values())
            if b
        ]
        if not all(self.origins_of(step.access) for step in self.accesses if step.access.space == "global"):
            raise CannotSplit
        # of the parameters those that point to arrays from whose contents addresses or branches follow
        self.contents = set().union(*self.early_loads.values())
        self.parameters = {p: p not in values for p in self._loaded()}
        if not {name for name, _, _ in self.parameters} <= {p.name for p in program.function.params}:
            raise CannotSplit

    @cached_property
    def noting_functions(self) -> list:
        """The program's functions; those with something late also tell ``memory`` what that needs."""
        return self._with(_NotingTranslator(self), self.program.functions)

    @cached_property
    def late_functions(self) -> list:
        """By block what is late in it, None where nothing is."""
        return self._with(_LateTranslator(self), [None] * len(self.program.blocks))

    @cached_property
    def early_loads(self) -> dict[int, frozenset[Parameter]]:
        """Of each early load from global memory, by site, the parameters that its address may come from."""
        numbers = {id(instr): number for number, instr in enumerate(self.program.sites)}
        there = (step for step in self.accesses if step.access.space == "global")
        early = (step for step in there if not self.is_late(step.instr))
        return {numbers[id(step.instr)]: self.origins_of(step.access) for step in early}

    @cached_property
    def generic(self) -> dict[int, str]:
        """Of each access that names no memory, by site, the one that it seems to go to."""
        numbers = {id(instr): number for number, instr in enumerate(self.program.sites)}
        return {numbers[id(step.instr)]: step.access.space for step in self.accesses if step.access.generic}

    def _with(self, translator: Translator, functions: list) -> list:
        """``functions``, but for the blocks that have something late what the translator makes of them."""
        functions, blocks = list(functions), self.program.blocks
        mine = [b for b in blocks if self.decides_late(b) or any(map(self.is_late, b.instrs))]
        for block, function in zip(mine, compiled(translator, mine, blocks)):
            functions[block.index] = function
        return functions

    def decides_late(self, block: BasicBlock) -> bool:
        """Whether a block ends in a branch that follows from loaded values."""
        guard = block.branch.guard if block.end == "branch" and block.branch is not None else None
        return guard is not None and guard.name in self.late

    def access(self, instr: Instr) -> _Access | None:
        return self.steps[id(instr)].access

    def is_late(self, instr: Instr) -> bool:
        return self._is_late(self.steps[id(instr)], self.late, self.late_memory)

    def early_of(self, instr: Instr) -> list[str]:
        """The early registers that a late instruction reads, but for its address."""
        step = self.steps[id(instr)]
        return sorted((step.access.stored if step.access else step.read) - self.late)

    def origins_of(self, access: _Access) -> frozenset[Parameter]:
        """The parameters that an address may come from."""
        return frozenset().union(*(self.origins.get(register, ()) for register in access.base))

    def _places(self) -> set[str]:
        """The registers that addresses and barriers name."""
        operands = (operand for barrier in self.barriers for operand in barrier.operands)
        return set().union(
            *(step.access.base for step in self.accesses), {op.name for op in operands if isinstance(op, Reg)}
        )

    def _needed(self) -> set[str]:
        """The registers from which addresses, barriers and branches follow, loaded floats left aside."""
        guards = (b.branch.guard for b in self.program.blocks if b.branch is not None)
        needed = self._places() | {guard.name for guard in guards if guard is not None}
        stored = {
            space: set().union(*(s.access.stored for s in self.accesses if s.access.space == space))
            for space in OWN
        }
        size = -1
        while size != len(needed):
            size = len(needed)
            for step in reversed(self.steps.values()):
                if needed.isdisjoint(step.written):
                    continue
                if not step.access:
                    needed |= step.read
                elif step.access.space in OWN and not step.access.is_float:
                    needed |= stored[step.access.space]
        return needed

    def _late(self) -> tuple[set[str], set[str]]:
        """The registers that hold what was loaded, or is computed from it; of ``OWN`` memory which does."""
        late: set[str] = set()
        memory: set[str] = set()
        size = -1
        while size != len(late) + len(memory):
            size = len(late) + len(memory)
            for step in self.steps.values():
                access = step.access
                if access and access.space in OWN:
                    if access.way == "atomic" or not late.isdisjoint(access.stored | step.written):
                        memory.add(access.space)
                if self._is_late(step, late, memory) or not (access or late.isdisjoint(step.read)):
                    late |= step.written
        return late, memory

    def _is_late(self, step: _Step, late: set[str], memory: set[str]) -> bool:
        access = step.access
        if not late.isdisjoint(step.written):
            return True
        if access is None:
            return False
        if access.space in OWN:
            return access.space in memory
        return access.way != "load" or access.is_float or self.needed.isdisjoint(step.written)

    def _loaded(self) -> list[Parameter]:
        return [p for step in self.steps.values() for p in step.parameters.values()]

    def _numbers(self) -> tuple[set[Parameter], dict[str, set[Parameter]]]:
        """The parameters that are no pointers, or not only added to; by register from which of the others
        the address in it comes.
        """
        values = {parameter for parameter in self._loaded() if parameter[2] != 8}
        while True:
            origins = self._origins(values)
            used = set().union(*(_as_numbers(step, origins) for step in self.steps.values()))
            if used <= values:
                return values, origins
            values |= used

    def _origins(self, values: set[Parameter]) -> dict[str, set[Parameter]]:
        """By register, the parameters that the address in it may come from, but for those in ``values``."""
        origins: dict[str, set[Parameter]] = {}
        for step in self.steps.values():
            for register, parameter in step.parameters.items():
                origins.setdefault(register, set()).update({parameter} - values)
        passing = [step for step in self.steps.values() if step.instr.opcode in PASSED_ON]
        size = -1
        while size != sum(map(len, origins.values())):
            size = sum(map(len, origins.values()))
            for step in passing:
                found = set().union(*(origins[r] for r in step.read if r in origins))
                for register in step.written if found else ():
                    origins[register] = origins.get(register, set()) | found
        return origins


def _windows(instrs: list[Instr]) -> dict[str, set[str]]:
    """By register, which of a launch's own memories a generic address in it may lie in."""
    windows: dict[str, set[str]] = {}
    shifts = []
    for instr in instrs:
        if instr.opcode == "cvta" and "to" not in instr.mods and space_of(instr) in OWN:
            windows.setdefault(instr.operands[0].name, set()).add(space_of(instr))
        elif instr.opcode in SHIFTED and isinstance(instr.operands[0], Reg):
            read = [op.name for op in instr.operands[1:] if isinstance(op, Reg)]
            shifts.append((instr.operands[0].name, read))
    size = -1
    while size != sum(map(len, windows.values())):
        size = sum(map(len, windows.values()))
        for written, read in shifts:
            found = set().union(*(windows[register] for register in read if register in windows))
            if found:
                windows[written] = windows.get(written, set()) | found
    return windows


def _access(instr: Instr, windows: dict[str, set[str]]) -> _Access | None:
    """What an instruction is as an access to one memory, None if it is no plain one."""
    way, space = effects_of(instr, INSTRUCTIONS).memory, space_of(instr)
    generic = space == "generic" and instr.opcode in ("ld", "st")
    if generic:
        bases = [op.base for op in instr.operands if isinstance(op, Mem)]
        own = windows.get(bases[0].name, set()) if bases and isinstance(bases[0], Reg) else set()
        space = "global" if not own else next(iter(own)) if len(own) == 1 else "generic"
    if space not in ("global", *OWN):
        return None
    if instr.opcode not in ("atom", "red") and not (
        instr.opcode in ("ld", "st") and PLAIN.issuperset(instr.mods)
    ):
        return None
    address = next(operand for operand in instr.operands if isinstance(operand, Mem))
    if not isinstance(address.base, Reg | Sym):
        return None
    behind = () if way == "load" else instr.operands[instr.operands.index(address) + 1 :]
    items = [item for op in behind for item in (op.items if isinstance(op, Vec) else (op,))]
    stored = {item.name for item in items if isinstance(item, Reg)}
    return _Access(space, way, address, stored, TYPES[last_type(instr.mods)].is_float, generic)


def _loaded_by(instr: Instr) -> Iterator[tuple[str, Parameter]]:
    """The registers that a load of a parameter fills, and with what."""
    target, address, *_ = instr.operands
    width = TYPES[last_type(instr.mods)].bytes
    for i, item in enumerate(target.items if isinstance(target, Vec) else (target,)):
        yield item.name, (address.base.name, address.base.offset + address.offset + i * width, width)


def _summands(step: _Step, origins: dict[str, set[Parameter]]) -> tuple[str | None, str | None]:
    """The one or two registers of which an instruction makes a pointer, by no more than adding to it; None
    for each that there is not.
    """
    instr = step.instr
    if step.access or instr.opcode not in PASSED_ON or instr.mods[-1] not in ADDRESSES:
        return None, None
    pointers = [op.name for op in instr.operands[1:] if isinstance(op, Reg) and origins.get(op.name)]
    if any(isinstance(op, Vec) for op in instr.operands):
        return None, None
    first, second = (*pointers, None, None)[:2]
    return first, second


def _as_numbers(step: _Step, origins: dict[str, set[Parameter]]) -> set[Parameter]:
    """The parameters among ``origins`` that an instruction takes for numbers: it does more than add."""
    read = step.access.stored if step.access else step.read
    if _summands(step, origins)[0]:
        return set()
    return set().union(*(origins.get(register, set()) for register in read))


class _PartTranslator(Translator):
    """Emits beside, or instead of, late instructions what its subclasses say."""

    def __init__(self, parts: EarlyAndLate):
        program = parts.program
        super().__init__(program.function, program.symbols, program.name, program.module.files)
        self.parts = parts
        self.numbers = {id(instr): number for number, instr in enumerate(program.sites)}

    def site(self, instr: Instr) -> int:
        """The number that the site has in the program."""
        return self.numbers[id(instr)]


class _NotingTranslator(_PartTranslator):
    """Emits all, and before a late instruction what tells ``memory`` the early values that it needs."""

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        return f"memory.begin(group, {block.index})\n    {super().block(block, live_out)}"

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)

        def noted(code, instr):
            if self.parts.is_late(instr):
                self._note(instr)
            handler(code, instr)

        return noted

    def _note(self, instr: Instr) -> None:
        for register in self.parts.early_of(instr):
            self.emit(f"memory.keep({self.use(Reg(register), self.canonical(register))})")
        if instr.opcode in OF_WARP:
            self.emit("memory.keep_lanes(group)")
        access = self.parts.access(instr)
        if not access:
            return
        base, offset = self.base_and_offset(access.address)
        vector = next((op for op in instr.operands if isinstance(op, Vec)), None)
        width, count = TYPES[last_type(instr.mods)].bytes, len(vector.items) if vector else 1
        origins = f"c_origins_{self.site(instr)}"
        self.constants[origins] = self.parts.origins_of(access)
        dtype = None if access.way == "atomic" else dtype_of(instr.mods)
        where = f"{access.space!r}, {base}, {offset}, {width}, {dtype!r}, {count}"
        self.emit(f"memory.late(group, {where}, {access.way!r}, {origins}, {access.generic})")


class _LateTranslator(_PartTranslator):
    """Emits what is late. The functions' second argument, ``group``, is what the noting ones have kept:
    values, and for an address a view of memory, by number, and indices.
    """

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        self.taken = 0
        if not self.parts.decides_late(block):
            block = replace(block, end="fall", branch=None)
        return f"known, views = group, memory.views\n    {super().block(block, live_out & self.parts.late)}"

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)

        def late(code, instr):
            if not self.parts.is_late(instr):
                return
            for register in self.parts.early_of(instr):
                variable = self.python_name(register)
                self.emit(f"{variable} = {self._next_kept()}")
                self.local[register] = variable, self.canonical(register)
            if instr.opcode in OF_WARP:
                self.emit(f"group = {self._next_kept()}")
            access = self.parts.access(instr)
            if access is None or access.way == "atomic":
                handler(code, instr)
            else:
                self._move(instr, access)

        return late

    def _move(self, instr: Instr, access: _Access) -> None:
        """A load or a store, where nothing is left to check."""
        dtype, view = dtype_of(instr.mods), f"views[{self._next_kept()}]"
        value = instr.operands[0 if access.way == "load" else 1]
        for item in value.items if isinstance(value, Vec) else (value,):
            index = self._next_kept()
            if access.way == "load":
                self.define(item, f"{view}[{index}]", dtype)
            else:
                self.emit(f"value = {self.use(item, dtype)}")
                self.emit(f"{view}[{index}] = value[-1] if {index}.size == 1 < value.size else value")

    def base_and_offset(self, mem: Mem) -> tuple[str, int]:
        """Of an atomic."""
        return self._next_kept(), 0

    def _next_kept(self) -> str:
        self.taken += 1
        return f"known[{self.taken - 1}]"
