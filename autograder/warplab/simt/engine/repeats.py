"""Repeated launches replay the trace of an earlier one instead of running in full.

Programs of small kernels launch a few of them again and again, on arrays of the same sizes. The second launch
of a kind is traced (``tracing``) and then runs in full, with all checks. Later launches of the kind replay
the trace: loads, computations on loaded values, and stores. They skip index arithmetic and checks, which
would have the same results.

Launches are of one kind if they agree in grid, block and every parameter that the kernel loads, except that
float parameters may differ, and that pointers may point to other arrays of the same size, at the same
offset, as long as the same pointers share an array. Where addresses or branches depend on small arrays of
integers (shapes, strides), the contents of these must agree too.

Some launches always run in full: those with observers (``profile``, ``step``); those whose checks depended on
written values; and those in which a branch on loaded values goes another way than in the trace, which is
detected before anything is written.
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

FULL_RUNS = 8  # launches of a program that run in full before any is traced
MOST_CONTENTS = 1 << 10  # bytes of an array whose contents may be part of the kind
MOST_KINDS, MOST_BYTES = 256, 1 << 26  # limits of a program's traces: their number, and their bytes in all
IDLE = 1000  # launches of the program without a replay after which its traces are dropped
UNTRACED = {"mma", "movmatrix", "mbarrier", "extern", "recurse", "results", "trap", "call"}
PLAIN = {"global", "nc", "shared", "local", "v2", "v4", "v8", *TYPES}  # modifiers of loads and stores


class Repeats:
    """The launches of one program, by kind."""

    def __init__(self, program: Program):
        self.program = program
        self.most_contents = MOST_CONTENTS
        self.contents: set[Parameter] = set()  # pointers to arrays on which addresses or branches depend
        self.forget()

    def forget(self) -> None:
        self.seen: set[int] = set()  # hashes of the keys of kinds that have been launched
        self.kept: dict[tuple, KeptLaunch | None] = {}  # by key; None for kinds that run in full
        self.bytes, self.last_replay = 0, self.program.launches

    @cached_property
    def parameters(self) -> dict[Parameter, bool]:
        """Each parameter that the kernel loads -> whether it is always loaded as a float. Empty for a kernel
        that cannot be traced.
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
        """The kind of a launch; None if it cannot be traced."""
        if not self.parameters:
            return None
        kind = LaunchKind(self, launch, space)
        return kind if kind.identify() else None

    def wants(self, key: tuple) -> bool:
        """Whether to trace a launch of this kind: if it has been launched before, and there is room. Traces
        are not evicted one by one, because kinds that are launched in turn would evict each other.
        """
        if key in self.kept:
            return False
        if self.program.launches - self.last_replay > IDLE:
            self.forget()
        if len(self.seen) == IDLE:
            self.seen.clear()
        came_before = hash(key) in self.seen
        self.seen.add(hash(key))
        return came_before and len(self.kept) < MOST_KINDS and self.bytes < MOST_BYTES


@dataclass
class KeptLaunch:
    """A kind's trace: its ``function``; in ``own`` the bytes of shared and of local memory that it needs;
    ``written``, the numbers of the regions that it writes; its size in ``bytes``.
    """

    function: Callable
    own: list[int]
    written: set[int]
    bytes: int
    replays: int = 0

    def replay(self, regions: list[Region], params: dict) -> bool:
        """Replay the launch; False, without having written anything, if a branch goes another way."""
        own = [Region(0, np.empty(size, np.uint8), "") for size in self.own]
        with np.errstate(all="ignore"):
            return self.function([*regions, *own], params)


class LaunchKind:
    """The kind of a launch: launches with equal ``key`` are of one kind."""

    def __init__(self, repeats: Repeats, launch: Launch, space: AddressSpace):
        self.repeats, self.launch, self.space = repeats, launch, space
        self.traced: TracingMachine | None = None  # the machine that traced the launch, if one did

    def identify(self) -> bool:
        """Set the ``key``, the ``regions`` that the launch's pointers point into, ``numbers`` (parameter ->
        index in ``regions``), and ``contents``, the indices of regions whose contents are part of the key.
        Returns False if the contents would be too large for that.
        """
        launch, repeats = self.launch, self.repeats
        key: list = [launch.grid, launch.block, launch.dynamic_shared]
        known: dict[int, int] = {}  # base of a region -> its index in ``regions``
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
        """Replay the kind's trace, if there is one; False if the launch has to run in full."""
        repeats = self.repeats
        kept = repeats.kept.get(self.key)
        if kept is None or self._changes_contents(kept.written):
            return False
        if kept.replay(self.regions, self.launch.params):
            kept.replays, repeats.last_replay = kept.replays + 1, repeats.program.launches
            return True
        if kept.replays < 2:  # its branches seem to go another way each time
            repeats.kept[self.key] = None
        else:
            repeats.kept.pop(self.key, None)
        repeats.bytes -= kept.bytes
        return False

    def _changes_contents(self, written: Iterable[int]) -> bool:
        """Whether one of the ``written`` regions shares memory with one whose contents are in the key."""
        data = [region.data for region in self.regions]
        return any(np.may_share_memory(data[i], data[j]) for i in written for j in self.contents)

    def trace(self) -> bool:
        """Trace the launch, without writing to its arrays, if ``Repeats.wants`` it. If True, the caller runs
        the launch in full next, and then calls ``keep``.
        """
        return self.repeats.wants(self.key) and self._trace()

    def _trace(self) -> bool:
        machine = TracingMachine(self)
        try:
            machine.run()
            self.traced = machine
        except DependsOnContents as found:  # kinds must also agree in these contents: start again
            self.repeats.contents |= found.args[0]
            self.repeats.forget()
            return self.identify() and self._trace()
        except (CannotTrace, LaunchError, TypeError, ValueError):
            pass  # launches of the kind run in full
        return True

    def keep(self, checks_hold: bool) -> None:
        """Keep the trace of the launch, which has run to its end. ``checks_hold``: the checks would have the
        same results for all launches of the kind.
        """
        kept = self._kept() if checks_hold and self.traced else None
        self.repeats.kept[self.key] = kept
        self.repeats.bytes += kept.bytes if kept else 0

    def _kept(self) -> KeptLaunch | None:
        """The trace to keep; None if it did not write what the launch in full has written."""
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
    """Whether the value of one of the ``registers`` may differ between launches of a kind."""

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
