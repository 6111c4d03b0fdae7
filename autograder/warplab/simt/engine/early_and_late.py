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
from dataclasses import replace
from functools import cached_property

from warplab.simt.engine.following import CARRIED
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.movement import space_of
from warplab.simt.engine.program import Program
from warplab.simt.engine.translate import Translator, compiled
from warplab.simt.ptx.blocks import BasicBlock, is_special, loads_parameter, registers_read, registers_written
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr, Mem, Reg, Sym, Vec
from warplab.simt.ptx.ptx_types import TYPES, last_type

OF_WARP = {"activemask", "elect", "match", "redux", "shfl", "vote"}
NOT_ALONE = {*CARRIED, "mma", "movmatrix", "extern", "recurse", "results", "createpolicy", "trap", "call"}
SILENT = {"bar", "barrier", "fence", "membar", "nanosleep", "prefetch"}  # they change no register
PASSED_ON = {"mov", "cvta", "add"}  # what a pointer may go through and stay one
ADDRESSES = {"u64", "s64", "b64"}
PLAIN = {"global", "nc", "shared", "local", "v2", "v4", "v8", *TYPES}  # modifiers of loads and stores
OWN = ("shared", "local")  # memory that a launch begins with unwritten
Parameter = tuple[str, int, int]  # its name, an offset in it, and how many bytes are loaded


class CannotSplit(Exception):
    """A program does not come apart."""


class EarlyAndLate:
    """The two parts of a program. Raises CannotSplit where there are no two."""

    def __init__(self, program: Program):
        self.program, blocks = program, program.blocks
        self.instrs = [i for b in blocks for i in b.instrs]
        self.barriers = [b.branch for b in blocks if b.end == "barrier" and b.branch is not None]
        if program.routines or any("red" in barrier.mods for barrier in self.barriers):
            raise CannotSplit
        if not all(loads_parameter(i) or _touches(i) or _computes(i) for i in self.instrs):
            raise CannotSplit
        self.needed = self._needed()
        self.late, self.late_memory = self._late()
        if not self.late.isdisjoint(self._places()):
            raise CannotSplit
        for instr in filter(self.is_late, self.instrs):
            if any(map(is_special, registers_read(instr, INSTRUCTIONS))):
                raise CannotSplit
        values, self.origins = self._numbers()
        self.contents = self._contents()
        self.parameters = {p: p not in values for p in self._loaded()}
        if not {name for name, _, _ in self.parameters} <= {p.name for p in program.function.params}:
            raise CannotSplit

    @cached_property
    def noting_functions(self) -> list:
        """The program's functions; those with accesses to memory or something late also tell ``memory`` of
        it.
        """
        touching = [b for b in self.program.blocks if self.is_part_late(b) or any(map(_touches, b.instrs))]
        return self._with(_NotingTranslator(self), touching, self.program.functions)

    @cached_property
    def late_functions(self) -> list:
        """By block what is late in it, None where nothing is."""
        blocks = self.program.blocks
        return self._with(
            _LateTranslator(self), list(filter(self.is_part_late, blocks)), [None] * len(blocks)
        )

    def _with(self, translator: Translator, blocks: list[BasicBlock], functions: list) -> list:
        """``functions``, but for these blocks what the translator makes of them."""
        functions = list(functions)
        for block, function in zip(blocks, compiled(translator, blocks, self.program.blocks)):
            functions[block.index] = function
        return functions

    def is_part_late(self, block: BasicBlock) -> bool:
        return self.decides_late(block) or any(map(self.is_late, block.instrs))

    def decides_late(self, block: BasicBlock) -> bool:
        """Whether a block ends in a branch that follows from loaded values."""
        guard = block.branch.guard if block.end == "branch" and block.branch is not None else None
        return guard is not None and guard.name in self.late

    def is_late(self, instr: Instr) -> bool:
        if _touches(instr):
            return self._is_late_access(instr, self.late, self.late_memory)
        return not self.late.isdisjoint(registers_written(instr, INSTRUCTIONS))

    def early_of(self, instr: Instr) -> list[str]:
        """The early registers that a late instruction reads, but for its address."""
        read = _stored(instr) if _touches(instr) else registers_read(instr, INSTRUCTIONS)
        return sorted(read - self.late)

    def _places(self) -> set[str]:
        """The registers that addresses and barriers name."""
        bases = (_address(i).base for i in filter(_touches, self.instrs))
        operands = (operand for barrier in self.barriers for operand in barrier.operands)
        return {item.name for item in (*bases, *operands) if isinstance(item, Reg)}

    def _needed(self) -> set[str]:
        """The registers from which addresses, barriers and branches follow, loaded floats left aside."""
        guards = (b.branch.guard for b in self.program.blocks if b.branch is not None)
        needed = self._places() | {guard.name for guard in guards if guard is not None}
        size = -1
        while size != len(needed):
            size = len(needed)
            for instr in self.instrs:
                if needed.isdisjoint(registers_written(instr, INSTRUCTIONS)):
                    continue
                if not _touches(instr):
                    needed |= registers_read(instr, INSTRUCTIONS)
                elif space_of(instr) in OWN and not _is_float(instr):
                    same = (i for i in self.instrs if _touches(i) and space_of(i) == space_of(instr))
                    needed |= set().union(*map(_stored, same))
        return needed

    def _late(self) -> tuple[set[str], set[str]]:
        """The registers that hold what was loaded, or is computed from it; of ``OWN`` memory which does."""
        late: set[str] = set()
        memory: set[str] = set()
        size = -1
        while size != len(late) + len(memory):
            size = len(late) + len(memory)
            for instr in self.instrs:
                written = registers_written(instr, INSTRUCTIONS)
                if _touches(instr):
                    if _is_atomic(instr) or not late.isdisjoint(_stored(instr) | written):
                        memory |= {space_of(instr)} & set(OWN)
                    came = self._is_late_access(instr, late, memory)
                else:
                    came = not late.isdisjoint(registers_read(instr, INSTRUCTIONS))
                if came:
                    late |= written
        return late, memory

    def _is_late_access(self, instr: Instr, late: set[str], memory: set[str]) -> bool:
        if space_of(instr) in OWN:
            return space_of(instr) in memory
        written = registers_written(instr, INSTRUCTIONS)
        early = not self.needed.isdisjoint(written) and late.isdisjoint(written)
        return instr.opcode != "ld" or _is_float(instr) or not early

    def _loaded(self) -> list[Parameter]:
        return [p for i in filter(loads_parameter, self.instrs) for _, p in _loaded_by(i)]

    def _numbers(self) -> tuple[set[Parameter], dict[str, set[Parameter]]]:
        """The parameters that are no pointers, or not only added to; by register from which of the others
        the address in it comes.
        """
        values = {parameter for parameter in self._loaded() if parameter[2] != 8}
        while True:
            origins = self._origins(values)
            used = set().union(*(_as_numbers(instr, origins) for instr in self.instrs))
            if used <= values:
                return values, origins
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

    def _contents(self) -> set[Parameter]:
        """The parameters that point to arrays from whose contents addresses or branches follow."""
        in_global = [i for i in self.instrs if _touches(i) and space_of(i) == "global"]
        if not all(map(self.origins_of, in_global)):
            raise CannotSplit
        return set().union(*(self.origins_of(i) for i in in_global if not self.is_late(i)))

    def origins_of(self, instr: Instr) -> frozenset[Parameter]:
        """The parameters that the address of a load, a store or an atomic may come from."""
        base = _address(instr).base
        return frozenset(self.origins.get(base.name, ()) if isinstance(base, Reg) else ())


def _touches(instr: Instr) -> bool:
    """Whether an instruction is a plain load, a plain store or an atomic in memory that it names."""
    if space_of(instr) not in ("global", *OWN):
        return False
    return _is_atomic(instr) or (instr.opcode in ("ld", "st") and PLAIN.issuperset(instr.mods))


def _is_atomic(instr: Instr) -> bool:
    return instr.opcode in ("atom", "red")


def _is_float(instr: Instr) -> bool:
    named = last_type(instr.mods)
    return named is not None and TYPES[named].is_float


def _computes(instr: Instr) -> bool:
    """Whether an instruction computes registers of a lane from those of its warp's lanes, or no register."""
    row = effects_of(instr, INSTRUCTIONS)
    if row.memory != "none" or instr.opcode in NOT_ALONE or "cc" in instr.mods:
        return False
    return row.writes(instr) or instr.opcode in SILENT


def _address(instr: Instr) -> Mem:
    """Of a load, a store or an atomic."""
    address = next((operand for operand in instr.operands if isinstance(operand, Mem)), None)
    if address is None or not isinstance(address.base, Reg | Sym):
        raise CannotSplit
    return address


def _stored(instr: Instr) -> set[str]:
    """The registers that a load (none), a store or an atomic puts into memory or compares with it."""
    behind = instr.operands[instr.operands.index(_address(instr)) + 1 :] if instr.opcode != "ld" else ()
    items = [item for op in behind for item in (op.items if isinstance(op, Vec) else (op,))]
    return {item.name for item in items if isinstance(item, Reg)}


def _loaded_by(instr: Instr) -> Iterator[tuple[str, Parameter]]:
    """The registers that a load of a parameter fills, and with what."""
    target, address, *_ = instr.operands
    width = TYPES[last_type(instr.mods)].bytes
    for i, item in enumerate(target.items if isinstance(target, Vec) else (target,)):
        yield item.name, (address.base.name, address.base.offset + address.offset + i * width, width)


def _as_numbers(instr: Instr, origins: dict[str, set[Parameter]]) -> set[Parameter]:
    """The parameters among ``origins`` that an instruction takes for numbers: it does more than add."""
    if _touches(instr):
        read = _stored(instr)
    else:
        read = registers_read(instr, INSTRUCTIONS)
        pointers = [op for op in instr.operands[1:] if isinstance(op, Reg) and origins.get(op.name)]
        if instr.opcode in PASSED_ON and instr.mods[-1] in ADDRESSES and len(pointers) < 2:
            if instr.opcode != "mov" or not any(isinstance(op, Vec) for op in instr.operands):
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
        body = super().block(block, live_out)
        if not self.parts.is_part_late(block):
            return body
        return f"memory.begin(group, {block.index})\n    {body}"

    def _handler(self, instr: Instr):
        handler = super()._handler(instr)

        def noted(code, instr):
            if self.parts.is_late(instr):
                self._note(instr)
            elif _touches(instr) and space_of(instr) == "global":
                base, _ = self.base_and_offset(_address(instr))
                self.emit(f"memory.early(group, {base}, {self._origins(instr)})")
            handler(code, instr)

        return noted

    def _note(self, instr: Instr) -> None:
        for register in self.parts.early_of(instr):
            self.emit(f"memory.keep({self.use(Reg(register), self.canonical(register))})")
        if instr.opcode in OF_WARP:
            self.emit("memory.keep_lanes(group)")
        if not _touches(instr):
            return
        base, offset = self.base_and_offset(_address(instr))
        vector = next((op for op in instr.operands if isinstance(op, Vec)), None)
        width, count = TYPES[last_type(instr.mods)].bytes, len(vector.items) if vector else 1
        where = f"{space_of(instr)!r}, {base}, {offset}, {width}, {count}"
        way = effects_of(instr, INSTRUCTIONS).memory
        self.emit(f"memory.late(group, {where}, {way!r}, {self._origins(instr)})")

    def _origins(self, instr: Instr) -> str:
        """The name of a constant."""
        name = f"c_origins_{self.site(instr)}"
        self.constants[name] = self.parts.origins_of(instr)
        return name


class _LateTranslator(_PartTranslator):
    """Emits what is late. The functions' second argument, ``group``, is what the noting ones have kept; an
    address is a place there.
    """

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        self.taken = 0
        if not self.parts.decides_late(block):
            block = replace(block, end="fall", branch=None)
        return f"known = group\n    {super().block(block, live_out & self.parts.late)}"

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
            handler(code, instr)

        return late

    def base_and_offset(self, mem: Mem) -> tuple[str, int]:
        return self._next_kept(), 0

    def _next_kept(self) -> str:
        self.taken += 1
        return f"known[{self.taken - 1}]"
