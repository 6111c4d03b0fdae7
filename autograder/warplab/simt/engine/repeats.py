"""Launches like an earlier one: what they have in common is computed once and kept.

A program that launches small kernels launches few of them, on arrays of the same sizes, again and again. Of a
kernel that comes apart (``early_and_late``) and is launched often, a kind's second launch and later ones run
the late instructions only: loads, what is computed from loaded values, and stores, on places that were found
and checked before. Nothing is kept that comes from memory, but for the arrays named below, and nothing that
goes there.

Launches are of a kind if they agree in grid, block, every parameter that the kernel loads, and every byte of
the arrays that its addresses follow from. Of a pointer that is only ever added to no more has to agree than
where in its array it points, how large that is, whether it may be written, and which other pointers point
into it. A branch that follows from loaded floats must go as it went: where it does not, and nothing has been
written yet, the launch runs as a whole. So do launches that somebody watches (``profile``, ``step``), and all
of a kind in which the checks of memory had to look at values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.atomics import update
from warplab.simt.engine.early_and_late import OWN, CannotSplit, EarlyAndLate, Parameter
from warplab.simt.engine.following import Followed
from warplab.simt.engine.generic_addresses import resolve
from warplab.simt.engine.groups import Group, joined
from warplab.simt.engine.loadstore import LoadStoreUnit
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.engine.straight import straight
from warplab.simt.observer import Observer

WHOLE = 8  # launches of a program before it is taken apart, which takes as long as some of them
CONTENTS = 1 << 10  # bytes of an array that addresses follow from
STEPS, BYTES = 1 << 11, 1 << 24  # of what is kept of one launch
KINDS, ALL_BYTES = 256, 1 << 26  # of a program's launches
OFTEN = 16  # launches by what is kept before a function is made of that, which takes as long as some of them


class Repeats:
    """The launches of one program, by kind."""

    def __init__(self, program: Program):
        self.program, self.launches, self.bytes = program, 0, 0
        self.names = [p.name for p in program.function.params]
        self.sizes = [p.size for p in program.function.params]
        self.allowed: tuple | None = None  # the configuration whose limits were checked last, and the Target
        self.kinds: dict[tuple, KeptLaunch | None] = {}  # the last one used last; None where nothing is kept
        # those in which reads of what nobody wrote were followed and came to nothing, whatever is loaded
        self.harmless: set[tuple] = set()

    @cached_property
    def parts(self) -> EarlyAndLate | None:
        """None where the program does not come apart."""
        try:
            return EarlyAndLate(self.program)
        except CannotSplit:
            return None

    def kind_of(self, launch: Launch, space: AddressSpace) -> LaunchKind | None:
        """None at a program's first launches, and where nothing can be kept."""
        self.launches += 1
        if self.launches <= WHOLE or self.parts is None:
            return None
        key: list = [launch.grid, launch.block, launch.dynamic_shared]
        known: dict[int, int] = {}  # the numbers of regions, by address
        regions: list[Region] = []
        numbers: dict[Parameter, int] = {}
        contents: set[int] = set()
        for parameter, name, part, is_pointer, content_matters in self.compared:
            value = launch.params[name] if part is None else launch.params[name][part]
            address = int.from_bytes(value, "little") if is_pointer else 0
            region = space.find(address) if is_pointer else None
            if region is None:
                key.append(value)
                continue
            number = numbers[parameter] = known.setdefault(region.base, len(known))
            if number == len(regions):
                regions.append(region)
            data = region.data
            key += number, address - region.base, data.size, region.writable
            if content_matters:
                if data.size > CONTENTS:
                    return None
                contents.add(number)
                key.append(data.tobytes())
        for one, other in self.parts.sums:
            if not (numbers.keys().isdisjoint(one) or numbers.keys().isdisjoint(other)):
                return None
        return LaunchKind(self, tuple(key), regions, numbers, contents)

    @cached_property
    def compared(self) -> list[tuple]:
        """Each parameter that is loaded, the name of the one that it is a part of, which bytes of that it is
        (None: all), whether it is a pointer that is only added to, and whether what it points to matters.
        """
        parts = self.parts
        assert parts is not None
        sizes = dict(zip(self.names, self.sizes))
        return [
            (
                p,
                p[0],
                None if p[2] == sizes[p[0]] else slice(p[1], p[1] + p[2]),
                is_pointer,
                p in parts.contents,
            )
            for p, is_pointer in parts.parameters.items()
        ]

    def keep(self, key: tuple, kept: KeptLaunch | None) -> None:
        """Note what is kept of a kind; forget those that were not launched for longest if it is too much."""
        self.forget(key)
        self.kinds[key] = kept
        self.bytes += kept.bytes if kept else 0
        while len(self.kinds) > KINDS or self.bytes > ALL_BYTES:
            self.forget(next(iter(self.kinds)))

    def forget(self, key: tuple) -> None:
        kept = self.kinds.pop(key, None)
        self.bytes -= kept.bytes if kept else 0


@dataclass
class LaunchKind:
    """What a launch has in common with others, and the ``regions`` that its own pointers point into: their
    ``numbers`` by parameter, and those of which the ``contents`` are the same too.
    """

    repeats: Repeats
    key: tuple
    regions: list[Region]
    numbers: dict[Parameter, int]
    contents: set[int]

    def run(self) -> bool:
        """Run the launch by what is kept of its kind; False if nothing is, or other branches were taken."""
        kinds = self.repeats.kinds
        kept = kinds.get(self.key)
        if kept is None or not self._stay(kept.written) or not kept.run(self.regions):
            return False
        kinds[self.key] = kinds.pop(self.key)
        return True

    def _stay(self, written: set[int]) -> bool:
        """Whether the contents that addresses follow from stay as they are while these regions change."""
        return not any(
            np.may_share_memory(self.regions[i].data, self.regions[j].data)
            for i in written
            for j in self.contents
        )

    def recorder(self, machine: Machine) -> Machine:
        """A machine for a launch of the kind that notes what can be kept; ``machine`` if that is nothing."""
        if self.key in self.repeats.kinds and self.repeats.kinds[self.key] is None:
            return machine
        return NotingMachine(self, machine)

    @property
    def is_harmless(self) -> bool:
        """Whether no read of what nobody wrote need be looked for."""
        return self.key in self.repeats.harmless

    def learn(self, machine: Machine, values_mattered: bool, deciders: Collection[str] = frozenset()) -> None:
        """Keep what is noted of a launch that has run to its end.

        deciders: the registers because of whose values what nobody wrote came to nothing.
        """
        if not isinstance(machine, NotingMachine):
            return
        if values_mattered or machine.doubts or not machine.parts.late.isdisjoint(deciders):
            self.repeats.keep(self.key, None)
        elif machine.follows:  # and has noted no more from there on: the next launch will
            if len(self.repeats.harmless) == KINDS:
                self.repeats.harmless.clear()
            self.repeats.harmless.add(self.key)
        else:
            kept = machine.kept()
            if kept is None or self._stay(kept.written):
                self.repeats.keep(self.key, kept)


@dataclass
class KeptLaunch:
    """Each step that has something late: its function, what it needs of the early part, its group's number,
    and which way a late branch went, None where the way is early.
    """

    steps: list[list]
    groups: int
    own: list[int]  # bytes of shared and of local memory
    views: list[tuple[int, str]]  # of regions, by number, as elements of a dtype
    params: dict
    written: set[int]  # numbers of regions
    atomics: set[int]  # of regions, and of own memory behind them
    bytes: int
    runs: int = 0
    straight: Callable | None = None  # what is made of the steps, and whether it needs own memory
    needs_own: bool = False

    def run(self, regions: list[Region]) -> bool:
        """False if a branch goes another way; nothing that anybody sees has been done then."""
        steps = self.steps  # before ``straight`` is looked at: another thread may put it in their place
        if self.straight is not None:
            with np.errstate(all="ignore"):
                return self.straight(self._with_own(regions) if self.needs_own else regions)
        memory = _Memory(self._with_own(regions), self)
        with np.errstate(all="ignore"):
            for late, known, group, expected in steps:
                guard = late(memory, known, memory.registers[group])
                if expected is not None and (guard != expected).any():
                    return False
        self.runs += 1
        if self.runs == OFTEN and (made := straight(self, regions)):
            self.needs_own, self.straight = made[1], made[0]
            self.steps = []
        return True

    def _with_own(self, regions: list[Region]) -> list[Region]:
        if not any(self.own):
            return regions
        return [*regions, *(Region(0, np.empty(size, np.uint8), "") for size in self.own)]


class _Memory:
    """Memory as late functions see it: ``views`` of regions as elements of a dtype."""

    def __init__(self, regions: list[Region], kept: KeptLaunch):
        self.regions, self.params = regions, kept.params
        self.views = [regions[number].view(dtype) for number, dtype in kept.views]
        self.registers: list[dict] = [{} for _ in range(kept.groups)]
        self.joined = joined

    def param(self, name: str, offset: int, dtype: str) -> np.ndarray:
        return np.frombuffer(self.params[name], dtype, 1, offset)

    def missed(self, group, site) -> None:
        """A shuffle does not miss a lane here: it did not when the checks looked, and its lanes are early."""

    def atomic(self, group, site, space, place, offset, dtype, operation, value, compare, wants_old):
        number, index = place
        return update(self.regions[number].view(dtype), index, operation, value, compare, wants_old)


def _parted(memory: _Memory, known, registers: dict) -> None:
    """The step in which some lanes of a group become one of their own."""
    source, keep, names = known
    for name, value in memory.registers[source].items():
        if name in names:
            registers[name] = value if value.size == 1 else value[keep]


def _merged(memory: _Memory, known, registers: dict) -> None:
    """The step in which several groups become one."""
    sources, places, size, names = known
    registers.update(memory.joined([memory.registers[source] for source in sources], places, size, names))


class NotingMachine(Machine):
    """Runs a launch as a whole, and notes what its late instructions need."""

    def __init__(self, kind: LaunchKind, machine: Machine):
        assert kind.repeats.parts is not None
        self.parts = kind.repeats.parts
        super().__init__(
            machine.program, machine.space, machine.launch, [*machine.observers, _Branches()], None
        )
        self.functions = self.parts.noting_functions
        self.memory = _Notes(self, kind)
        self.steps: list[list] = []
        self.numbers: dict[Group, int] = {}
        self.bytes, self.fits, self.written, self.atomics = 0, True, set(), set()
        self.own: list[int] = []
        self.follows = False
        self.views: dict[tuple[int, str], int] = {}

    def kept(self) -> KeptLaunch | None:
        if not self.fits:
            return None
        own = [size if name in self.parts.late_memory else 0 for name, size in zip(OWN, self.own)]
        views, groups = list(self.views), len(self.numbers)
        params, written, atomics = self.launch.params, self.written, self.atomics
        return KeptLaunch(self.steps, groups, own, views, params, written, atomics, self.bytes)

    def _start_chunk(self, first: int, count: int) -> None:
        super()._start_chunk(first, count)
        self.own = self.own or [self.shared.size, self.local.size]  # the first chunk is the largest

    @property
    def followed(self) -> Followed:
        self.follows = True
        return super().followed

    def step(self, function, known, group: Group, size: int = 0) -> None:
        self.count(size)
        self.fits &= len(self.steps) < STEPS
        if self.fits:
            self.steps.append([function, known, self.number(group), None])

    def count(self, size: int) -> None:
        self.bytes += size
        self.fits &= self.bytes <= BYTES

    def number(self, group: Group) -> int:
        return self.numbers.setdefault(group, len(self.numbers))

    def split(self, group: Group, mask: np.ndarray, live: frozenset[str]) -> Group:
        part = super().split(group, mask, live)
        if names := live & self.parts.late:
            keep = np.flatnonzero(mask)
            self.step(_parted, (self.number(group), keep, names), part, keep.nbytes)
        return part

    def _merge(self, groups: list[Group], live: frozenset[str]) -> Group:
        whole = super()._merge(groups, live)
        if names := live & self.parts.late:
            _, _, places = self._together(groups)
            known = [self.number(g) for g in groups], places, whole.size, names
            self.step(_merged, known, whole, 8 * whole.size)
        return whole


class _Branches(Observer):
    """Notes the ways of late branches."""

    def branched(self, machine, group, block, guard, uniform):
        if machine.fits and machine.parts.decides_late(block):
            machine.steps[-1][-1] = guard
            machine.fits = not machine.written


class _Notes(LoadStoreUnit):
    """Does what the program asks for, and is told first what its late part needs."""

    def __init__(self, machine: NotingMachine, kind: LaunchKind):
        super().__init__(machine)
        self.kind, self.known = kind, []

    def begin(self, group: Group, block: int) -> None:
        """A block that has something late."""
        self.known = []
        self.machine.step(self.machine.parts.late_functions[block], self.known, group)

    def keep(self, value, size: int = 0) -> None:
        """What a late instruction reads."""
        self.machine.count(size or value.nbytes)
        self.known.append(value)

    def keep_lanes(self, group: Group) -> None:
        """What a late instruction of the warp asks a group for."""
        table, row, column = group.table, group.row, group.column
        self.known.append(SimpleNamespace(table=table, row=row, column=column, size=group.size, full=True))

    def _load(self, group, site, address, offset, dtype, count, space):
        self._is_there(site, space)
        if space == "global" and site in self.machine.parts.early_loads:
            self._number(group, address, self.machine.parts.early_loads[site])
        return super()._load(group, site, address, offset, dtype, count, space)

    def _store(self, group, site, address, offset, dtype, values, space):
        self._is_there(site, space)
        super()._store(group, site, address, offset, dtype, values, space)

    def _is_there(self, site: int, space: str) -> None:
        """Nothing is kept of a launch in which a generic address lies in another memory than it seemed to."""
        self.machine.fits &= self.machine.parts.generic.get(site, space) == space

    def _number(self, group: Group, address: np.ndarray, origins: frozenset[Parameter]) -> int | None:
        """The number of the region that an access through pointers from these parameters goes to; None, and
        nothing is kept of the launch, if it goes to none of theirs.
        """
        region = self.prepare(group, "global", address).region
        numbers = {self.kind.numbers.get(origin) for origin in origins} - {None}
        number = next((i for i in numbers if self.kind.regions[i] is region), None)
        self.machine.fits &= number is not None
        return number

    def late(self, group, space, address, offset, width, dtype, count, way, origins, generic) -> None:
        """A late access, ``way`` a load, a store or an atomic, to ``count`` elements of ``width`` bytes."""
        if generic:
            found, address = resolve(address)
            if found != space:
                self.machine.fits = False
                return
        access = self.prepare(group, space, address)
        if space in OWN:
            number = len(self.kind.regions) + OWN.index(space)
        else:
            found = self._number(group, address, origins)
            if found is None:
                return
            number = found
            if way != "load":
                self.machine.written.add(number)
        if access.low + offset < 0 or access.high + offset + width * count > access.region.size:
            self.machine.fits = False  # lanes point into several regions, or outside
            return
        first = access.index(width.bit_length() - 1, offset)
        if way == "atomic":
            self.machine.atomics.add(number)
            self.keep((number, np.broadcast_to(first, (group.size,))), 8 * group.size)
            return
        views = self.machine.views
        self.known.append(views.setdefault((number, dtype), len(views)))
        for i in range(count):
            self.keep(first + i if i else first)
