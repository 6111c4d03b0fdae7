"""Launches like an earlier one replay what was traced of that one, instead of running as a whole.

A program that launches small kernels launches few of them, on arrays of the same sizes, again and again. When
a kind of launch comes for the second time, it is traced (``tracing``), then runs as a whole with all checks.
Later launches of the kind replay the trace: loads, what is computed from loaded values, and stores. They
repeat neither index arithmetic nor checks, which would find the same again.

Launches are of a kind if they agree in grid, block and every parameter that the kernel loads. Float
parameters may differ. A pointer may point to another array of the same size, at the same offset, if the other
pointers of the launch share that array or do not, as before. Where addresses or branches depend on
small arrays of integers (shapes, strides), their contents have to agree too.

These launches always run as a whole: those with observers (``profile``, ``step``); those whose checks
depended on the values that were written; and those in which a branch on loaded values goes another way than
in the trace, which is found before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.following import CARRIED
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.machine import Launch
from warplab.simt.engine.movement import space_of
from warplab.simt.engine.program import Program
from warplab.simt.engine.tracing import CannotTrace, Depends, Parameter, traceable
from warplab.simt.engine.tracing_machine import OWN, TracingMachine
from warplab.simt.errors import LaunchError
from warplab.simt.ptx.blocks import loads_parameter, registers_read, registers_written
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr, Vec
from warplab.simt.ptx.ptx_types import TYPES, last_type

WHOLE = 8  # launches of a program before any is traced
MOST_CONTENTS = 1 << 10  # bytes of an array whose contents may be part of the kind
KINDS, ALL_BYTES = 256, 1 << 26  # of a program's traces
IDLE = 1000  # launches of the program after which a trace that none of them replayed makes room for another
REFUSED = {"mma", "movmatrix", "mbarrier", "extern", "recurse", "results", "createpolicy", "trap", "call"}
SILENT = {"fence", "membar", "nanosleep", "prefetch"}  # they write no register
PLAIN = {"global", "nc", "shared", "local", "v2", "v4", "v8", *TYPES}  # modifiers of loads and stores


class Repeats:
    """The launches of one program, by kind."""

    def __init__(self, program: Program):
        self.program, self.launches, self.bytes = program, 0, 0
        self.most_contents = MOST_CONTENTS
        self.names = [p.name for p in program.function.params]
        self.sizes = [p.size for p in program.function.params]
        self.allowed: tuple | None = None  # the configuration whose limits were checked last, and the Target
        self.seen: set[int] = set()  # hashes of the keys of kinds that came once
        self.kinds: dict[tuple, KeptLaunch] = {}  # the one that was replayed last is last
        # what traces found that the kernel depends on: see ``Depends``
        self.values: frozenset[Parameter] = frozenset()
        self.contents: frozenset[Parameter] = frozenset()

    @cached_property
    def parameters(self) -> dict[Parameter, bool] | None:
        """Each parameter that the kernel loads, and whether only as a float; None for a kernel that has
        instructions which are not traced.
        """
        program = self.program
        found: dict[Parameter, bool] = {}
        for instr in (i for b in program.blocks for i in b.instrs):
            if loads_parameter(instr):
                is_float = TYPES[last_type(instr.mods)].is_float
                for parameter in _loaded_by(instr):
                    found[parameter] = is_float and found.get(parameter, True)
            elif not _is_traced(instr):
                return None
        votes = any(b.branch is not None and "red" in b.branch.mods for b in program.blocks)
        known = {name for name, _, _ in found} <= set(self.names)
        return found if known and not (votes or program.routines or program.grid_barrier) else None

    @cached_property
    def compared(self) -> list[tuple[Parameter, slice | None, bool]]:
        """Each parameter that is loaded; which bytes of the kernel's parameter it is, None for all of them;
        and whether it is only loaded as a float.
        """
        sizes = dict(zip(self.names, self.sizes))
        return [
            (p, None if p[2] == sizes[p[0]] else slice(p[1], p[1] + p[2]), is_float)
            for p, is_float in (self.parameters or {}).items()
        ]

    @cached_property
    def functions(self) -> list[Callable]:
        return [traceable(function) for function in self.program.functions]

    def kind_of(self, launch: Launch, space: AddressSpace) -> LaunchKind | None:
        """None at a program's first launches, and where launches cannot be traced."""
        self.launches += 1
        if self.launches <= WHOLE or self.parameters is None:
            return None
        kind = LaunchKind(self, launch, space)
        return kind if kind.identify() else None

    def wants(self, key: tuple) -> bool:
        """Whether to trace a launch of this kind: one that came before and has no trace, if there is room."""
        known = self.kinds.get(key)
        if known is not None:
            if not known.missing or not self._make_room(known.missing):
                return False
            self.forget(key)
        if hash(key) in self.seen:
            return self._make_room(0)
        if len(self.seen) == IDLE:
            self.seen.clear()
        self.seen.add(hash(key))
        return False

    def keep(self, key: tuple, kept: KeptLaunch) -> None:
        """Note the trace of a kind; without its function if there is no room."""
        if not self._make_room(kept.bytes):
            kept = KeptLaunch(missing=kept.bytes)
        self.kinds[key] = kept
        self.bytes += kept.bytes

    def forget(self, key: tuple) -> None:
        self.bytes -= self.kinds.pop(key).bytes

    def depend(self, found: Depends) -> None:
        """Let kinds differ where the kernel depends on it."""
        self.values |= found.values
        self.contents |= found.contents
        self.kinds, self.bytes = {}, 0

    def _make_room(self, size: int) -> bool:
        """Whether there is room for one more trace. Only those are forgotten that have been idle for long:
        kinds that come in turn would else each be forgotten just before it comes back.
        """
        while len(self.kinds) >= KINDS or self.bytes + size > ALL_BYTES:
            oldest = next(iter(self.kinds), None)
            if oldest is None or self.launches - self.kinds[oldest].last < IDLE:
                return False
            self.forget(oldest)
        return True


@dataclass
class KeptLaunch:
    """A kind's trace: its function, None if launches of the kind run as a whole; bytes of shared and of local
    memory that it needs; numbers of the regions it writes; when it was replayed last, and how often.
    ``missing``: the bytes of a trace for which there was no room.
    """

    replay: Callable | None = None
    own: tuple[int, ...] = ()
    written: frozenset[int] = frozenset()
    bytes: int = 0
    last: int = 0
    runs: int = 0
    missing: int = 0

    def run(self, regions: list[Region], params: dict) -> bool:
        """False if a branch goes another way; nothing has been written then."""
        own = [Region(0, np.empty(size, np.uint8), "") for size in self.own]
        with np.errstate(all="ignore"):
            return self.replay is not None and self.replay([*regions, *own], params)


class LaunchKind:
    """A launch with what it has in common with others: its ``key``."""

    def __init__(self, repeats: Repeats, launch: Launch, space: AddressSpace):
        self.repeats, self.launch, self.space = repeats, launch, space
        self.traced: dict[int, Region] = {}  # what its trace would have made of the regions, by number

    def identify(self) -> bool:
        """Find the ``key``, the ``regions`` that the launch's pointers point into, their ``numbers`` by
        parameter, and those of which the ``contents`` agree. False if too much would have to agree.
        """
        launch, repeats = self.launch, self.repeats
        key: list = [launch.grid, launch.block, launch.dynamic_shared]
        known: dict[int, int] = {}  # the numbers of regions, by address
        self.regions: list[Region] = []
        self.numbers: dict[Parameter, int] = {}
        self.contents: set[int] = set()
        for parameter, part, is_float in repeats.compared:
            must_agree = parameter in repeats.values
            if is_float and not must_agree:
                continue
            value = launch.params[parameter[0]] if part is None else launch.params[parameter[0]][part]
            is_pointer = len(value) == 8 and not must_agree
            address = int.from_bytes(value, "little") if is_pointer else 0
            region = self.space.find(address) if is_pointer else None
            if region is None:
                key.append(value)
                continue
            number = self.numbers[parameter] = known.setdefault(region.base, len(known))
            if number == len(self.regions):
                self.regions.append(region)
            data = region.data
            key += number, address - region.base, data.size, region.writable
            if parameter in repeats.contents:
                if data.size > repeats.most_contents:
                    return False
                self.contents.add(number)
                key.append(data.tobytes())
        self.key = tuple(key)
        return True

    def run(self) -> bool:
        """Replay what is kept of the kind; False if the launch has to run as a whole."""
        repeats = self.repeats
        kept = repeats.kinds.get(self.key)
        if kept is None or kept.replay is None or self._share(kept.written, self.contents):
            return False
        repeats.kinds[self.key] = repeats.kinds.pop(self.key)
        kept.last = repeats.launches
        if kept.run(self.regions, self.launch.params):
            kept.runs += 1
            return True
        repeats.forget(self.key)
        if kept.runs < 2:  # a trace that did not pay for itself; another would not either
            repeats.keep(self.key, KeptLaunch())
        return False

    def _share(self, written, others) -> bool:
        """Whether some of the ``written`` regions share memory with some of the ``others``."""
        data = [region.data for region in self.regions]
        return any(i != j and np.may_share_memory(data[i], data[j]) for i in written for j in others) or (
            not written.isdisjoint(self.contents)
        )

    def trace(self) -> KeptLaunch | None:
        """What later launches of the kind may replay; None if there is none now. Nothing is written."""
        if not self.repeats.wants(self.key):
            return None
        while True:
            try:
                return self._trace()
            except Depends as found:  # and the kind is another than it seemed
                self.repeats.depend(found)
                if not self.identify():
                    return None
            except (CannotTrace, LaunchError, TypeError, ValueError):
                return KeptLaunch()

    def _trace(self) -> KeptLaunch:
        machine = TracingMachine(self)
        machine.run()
        self.traced = machine.memory.copies
        written = frozenset(self.traced)
        if self._share(written, range(len(self.regions))):
            raise CannotTrace
        replay, size, touched = machine.trace.function()
        needs_own = any(number >= len(self.regions) for number in touched)
        own = tuple(machine.own_sizes[name] for name in OWN) if needs_own else ()
        return KeptLaunch(replay, own, written, size, self.repeats.launches)

    def keep(self, kept: KeptLaunch | None, checks_hold: bool) -> None:
        """Keep a trace of a launch that has run to its end. ``checks_hold``: in all launches of the kind."""
        if kept is None:
            return
        for number, copy in self.traced.items():
            checks_hold &= copy.data.tobytes() == self.regions[number].data.tobytes()
        self.repeats.keep(self.key, kept if checks_hold else KeptLaunch())


def _is_traced(instr: Instr) -> bool:
    row = effects_of(instr, INSTRUCTIONS)
    if instr.opcode in ("ld", "st"):
        return PLAIN.issuperset(instr.mods)
    if instr.opcode in ("atom", "red"):
        return space_of(instr) in ("global", *OWN)
    alone = row.memory == "none" and instr.opcode not in REFUSED and "cc" not in instr.mods
    return alone and instr.opcode not in CARRIED and (row.writes(instr) or instr.opcode in SILENT)


def _loaded_by(instr: Instr) -> list[Parameter]:
    """The parameters that an instruction loads."""
    target, address, *_ = instr.operands
    width = TYPES[last_type(instr.mods)].bytes
    start, count = address.base.offset + address.offset, len(target.items) if isinstance(target, Vec) else 1
    return [(address.base.name, start + i * width, width) for i in range(count)]


def depend_on_values(program: Program, registers: set[str]) -> bool:
    """Whether one of the ``registers`` may hold something that was loaded from memory."""
    loaded: set[str] = set()
    size = -1
    while size != len(loaded):
        size = len(loaded)
        for instr in (i for b in program.blocks for i in b.instrs):
            from_memory = effects_of(instr, INSTRUCTIONS).memory != "none" and not loads_parameter(instr)
            if from_memory or not loaded.isdisjoint(registers_read(instr, INSTRUCTIONS)):
                loaded |= registers_written(instr, INSTRUCTIONS)
    return not loaded.isdisjoint(registers)
