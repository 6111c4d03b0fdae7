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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.machine import Launch
from warplab.simt.engine.movement import space_of
from warplab.simt.engine.program import Program
from warplab.simt.engine.tracing import CannotTrace, DependsOnContents, Parameter
from warplab.simt.engine.tracing_machine import OWN, TracingMachine
from warplab.simt.errors import LaunchError
from warplab.simt.ptx.blocks import loads_parameter, registers_read, registers_written
from warplab.simt.ptx.dataflow import register_facts
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr, Vec
from warplab.simt.ptx.ptx_types import TYPES, PTXType, last_type

WHOLE = 8  # launches of a program before any is traced
MOST_CONTENTS = 1 << 10  # bytes of an array whose contents may be part of the kind
KINDS, ALL_BYTES = 256, 1 << 26  # of a program's traces
IDLE = 1000  # launches of the program without a replay after which its traces are dropped
UNTRACED = {"mma", "movmatrix", "mbarrier", "extern", "recurse", "results", "trap", "call"}
PLAIN = {"global", "nc", "shared", "local", "v2", "v4", "v8", *TYPES}  # modifiers of loads and stores


class Repeats:
    """The launches of one program, by kind."""

    def __init__(self, program: Program):
        self.program, self.launches = program, 0
        self.names = [p.name for p in program.function.params]
        self.sizes = [p.size for p in program.function.params]
        self.allowed: tuple | None = None  # the configuration whose limits were checked last, and the Target
        self.most_contents = MOST_CONTENTS
        self.contents: set[Parameter] = set()  # on what they point to addresses or branches depend
        self.forget()

    def forget(self) -> None:
        self.seen: set[int] = set()  # hashes of the keys of kinds that came once
        self.kept: dict[tuple, KeptLaunch | None] = {}  # by key; None where launches run as a whole
        self.bytes, self.last_replay = 0, self.launches

    @cached_property
    def parameters(self) -> dict[Parameter, bool]:
        """Each parameter that the kernel loads, and whether only as a float. Empty for a kernel that cannot
        be traced.
        """
        found: dict[Parameter, bool] = {}
        for instr in (i for b in self.program.blocks for i in b.instrs):
            if loads_parameter(instr):
                for parameter in _loaded_by(instr):
                    found[parameter] = found.get(parameter, True) and _type_of(instr).is_float
            elif not _is_traced(instr):
                return {}
        return found

    def kind_of(self, launch: Launch, space: AddressSpace) -> LaunchKind | None:
        """None at a program's first launches, and where launches cannot be traced."""
        self.launches += 1
        if self.launches <= WHOLE or not self.parameters:
            return None
        kind = LaunchKind(self, launch, space)
        return kind if kind.identify() else None

    def wants(self, key: tuple) -> bool:
        """Whether to trace a launch of this kind: one that came before, if there is room. No other trace
        makes room, for kinds that come in turn would each have to go just before they return.
        """
        if key in self.kept:
            return False
        if self.launches - self.last_replay > IDLE:
            self.forget()
        if len(self.seen) == IDLE:
            self.seen.clear()
        came_before = hash(key) in self.seen
        self.seen.add(hash(key))
        return came_before and len(self.kept) < KINDS and self.bytes < ALL_BYTES


@dataclass
class KeptLaunch:
    """A kind's trace: its function; bytes of shared and of local memory that it needs; numbers of the regions
    that it writes; how often it was replayed.
    """

    function: Callable
    own: list[int]
    written: set[int]
    bytes: int
    replays: int = 0

    def replay(self, regions: list[Region], params: dict) -> bool:
        """False if a branch goes another way; nothing has been written then."""
        own = [Region(0, np.empty(size, np.uint8), "") for size in self.own]
        with np.errstate(all="ignore"):
            return self.function([*regions, *own], params)


class LaunchKind:
    """A launch with what it has in common with others: its ``key``."""

    def __init__(self, repeats: Repeats, launch: Launch, space: AddressSpace):
        self.repeats, self.launch, self.space = repeats, launch, space
        self.traced: TracingMachine | None = None  # on which the launch was traced

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
        for parameter, is_float in repeats.parameters.items():
            if is_float:
                continue
            name, offset, width = parameter
            value = launch.params[name][offset : offset + width]
            address = int.from_bytes(value, "little") if width == 8 else 0
            region = self.space.find(address) if address else None
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

    def replay(self) -> bool:
        """Replay what is kept of the kind; False if the launch has to run as a whole."""
        repeats = self.repeats
        kept = repeats.kept.get(self.key)
        if kept is None or self._changes_contents(kept.written):
            return False
        if kept.replay(self.regions, self.launch.params):
            kept.replays, repeats.last_replay = kept.replays + 1, repeats.launches
            return True
        if kept.replays < 2:  # its branches go another way each time
            repeats.kept[self.key] = None
        else:
            repeats.kept.pop(self.key, None)
        repeats.bytes -= kept.bytes
        return False

    def _changes_contents(self, written: Iterable[int]) -> bool:
        """Whether one of the ``written`` regions shares memory with one whose contents have to agree."""
        data = [region.data for region in self.regions]
        return any(np.may_share_memory(data[i], data[j]) for i in written for j in self.contents)

    def trace(self) -> bool:
        """Trace the launch if its kind is worth it, without writing anything. If so, the launch has to run as
        a whole next, and ``keep`` to be called.
        """
        return self.repeats.wants(self.key) and self._trace()

    def _trace(self) -> bool:
        machine = TracingMachine(self)
        try:
            machine.run()
            self.traced = machine
        except DependsOnContents as found:  # and the kind is another than it seemed
            self.repeats.contents |= found.args[0]
            self.repeats.forget()
            return self.identify() and self._trace()
        except (CannotTrace, LaunchError, TypeError, ValueError):
            pass  # launches of the kind run as a whole
        return True

    def keep(self, checks_hold: bool) -> None:
        """Keep the trace of the launch, which has run to its end. ``checks_hold``: all launches of the kind
        would pass them.
        """
        kept = self._kept() if checks_hold and self.traced else None
        self.repeats.kept[self.key] = kept
        self.repeats.bytes += kept.bytes if kept else 0

    def _kept(self) -> KeptLaunch | None:
        """None where the trace would not do what the launch did."""
        assert self.traced is not None
        copies = self.traced.accesses.copies
        if any(copy.data.tobytes() != self.regions[i].data.tobytes() for i, copy in copies.items()):
            return None
        trace = self.traced.trace
        function, touched = trace.function()
        needs_own = any(number >= len(self.regions) for number in touched)
        own = self.traced.own_sizes if needs_own else []
        return KeptLaunch(function, own, set(copies), trace.bytes + 200 * len(trace.steps))


def _is_traced(instr: Instr) -> bool:
    if instr.opcode in ("ld", "st"):
        return PLAIN.issuperset(instr.mods)
    if instr.opcode in ("atom", "red"):
        return space_of(instr) in ("global", *OWN)
    return effects_of(instr, INSTRUCTIONS).memory == "none" and instr.opcode not in UNTRACED


def _type_of(instr: Instr) -> PTXType:
    return TYPES[last_type(instr.mods)]


def _loaded_by(instr: Instr) -> list[Parameter]:
    """The parameters that an instruction loads."""
    target, address, *_ = instr.operands
    width = _type_of(instr).bytes
    start, count = address.base.offset + address.offset, len(target.items) if isinstance(target, Vec) else 1
    return [(address.base.name, start + i * width, width) for i in range(count)]


def depend_on_values(program: Program, registers: set[str]) -> bool:
    """Whether what one of the ``registers`` holds may differ from launch to launch of a kind."""

    def may_differ(instr: Instr) -> bool:
        is_loaded = effects_of(instr, INSTRUCTIONS).memory != "none"
        return is_loaded and (_type_of(instr).is_float or not loads_parameter(instr))

    steps = (
        (registers_written(i, INSTRUCTIONS), registers_read(i, INSTRUCTIONS), frozenset([may_differ(i)]))
        for block in program.blocks
        for i in block.instrs
    )
    facts = register_facts(steps) if registers else {}
    return any(True in facts.get(register, ()) for register in registers)
