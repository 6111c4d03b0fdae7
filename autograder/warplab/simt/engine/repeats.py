"""Launches like an earlier one: what they compute before they look at memory is computed once and kept.

A program that launches small kernels launches few of them, on arrays of the same sizes, again and again. Of a
kernel that comes apart (``early_and_late``) and is launched often, a kind's third launch and later ones run
the late instructions only: loads, what is computed from loaded values, and stores, on places that were found
and checked before. Nothing that comes from memory is kept, and nothing that goes there.

Launches are of a kind if they agree in grid, block and every parameter that the kernel loads. Of a pointer
that is only ever added to no more has to agree than where in its array it points, how large that is, whether
it may be written, and which other pointers point into it. Launches that somebody watches (``profile``,
``step``) run as a whole, and so do all of a kind in which threads meet at a word that is written.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.early_and_late import CannotSplit, EarlyAndLate
from warplab.simt.engine.loadstore import LoadStoreUnit
from warplab.simt.engine.machine import CHUNK_LANES, Group, Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.observer import Observer

WHOLE = 16  # launches of a program before it is taken apart, which takes as long as some of them
KINDS = 32  # of a program's launches
STEPS, BYTES = 256, 1 << 20  # of what is kept of one


class Repeats:
    """The launches of one program, by kind."""

    def __init__(self, program: Program):
        self.program, self.launches = program, 0
        self.kinds: dict[
            tuple, KeptLaunch | None
        ] = {}  # None of one that came once, or of which nothing is kept

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
        if self.launches <= WHOLE or launch.blocks * launch.threads > CHUNK_LANES or self.parts is None:
            return None
        key: list = [launch.grid, launch.block, launch.dynamic_shared]
        regions: list[Region] = []
        for (name, offset, size), is_pointer in self.parts.parameters.items():
            value = bytes(launch.params[name][offset : offset + size])
            address = int.from_bytes(value, "little")
            region = space.find(address) if is_pointer else None
            if region is None:
                key.append(value)
                continue
            if all(region is not known for known in regions):
                regions.append(region)
            number = next(i for i, known in enumerate(regions) if known is region)
            key.append((number, address - region.base, region.size, region.writable))
        return LaunchKind(self, tuple(key), regions)


@dataclass
class LaunchKind:
    """What a launch has in common with others, and the ``regions`` that its own pointers point into."""

    repeats: Repeats
    key: tuple
    regions: list[Region]

    def run(self) -> bool:
        """Run the launch by what is kept of its kind; False if nothing is."""
        kept = self.repeats.kinds.get(self.key)
        if kept is not None:
            kept.run(self.regions)
        return kept is not None

    def learn(self, machine: Machine) -> None:
        """Note a launch that has run to its end, with no conflict; keep what can be of the second."""
        kinds, parts = self.repeats.kinds, self.repeats.parts
        assert parts is not None
        if self.key not in kinds:
            if len(kinds) >= KINDS:
                del kinds[next(iter(kinds))]
            kinds[self.key] = None
        elif self.key not in parts.refused:
            try:
                kinds[self.key] = EarlyMachine(parts, machine, self.regions).kept()
            except CannotSplit:
                parts.refused.add(self.key)


@dataclass
class KeptLaunch:
    """Of each block that ran, the late function, what it needs of the early one, and its group's number."""

    steps: list[tuple]
    groups: int

    def run(self, regions: list[Region]) -> None:
        memory, registers = _Places(regions), [{} for _ in range(self.groups)]
        with np.errstate(all="ignore"):
            for late, known, group in self.steps:
                late(memory, known, registers[group])


class _Places:
    """Memory as late functions see it: a place is a region's number, a dtype, and indices for each part."""

    def __init__(self, regions: list[Region]):
        self.regions = regions

    def load(self, place) -> list[np.ndarray]:
        region, dtype, indices = place
        view = self.regions[region].view(dtype)
        return [view[index] for index in indices]

    def store(self, place, values) -> None:
        region, dtype, indices = place
        view = self.regions[region].view(dtype)
        for index, value in zip(indices, values):
            view[index] = value[-1] if index.size == 1 < value.size else value


class EarlyMachine(Machine):
    """Runs the early part of a launch that is known to end well: it looks at no memory and changes none."""

    def __init__(self, parts: EarlyAndLate, of: Machine, regions: list[Region]):
        self.parts, program = parts, copy.copy(of.program)
        program.functions = [self._begun(i, early) for i, early in enumerate(parts.early_functions)]
        super().__init__(program, of.space, of.launch, [_Splits(parts.late)])
        self.memory = _Finder(self, regions)
        self.steps: list[tuple] = []
        self.numbers: dict[Group, int] = {}

    def kept(self) -> KeptLaunch:
        """Raises CannotSplit where it grows too long, or groups part with loaded values in registers."""
        self.run()
        return KeptLaunch(self.steps, len(self.numbers))

    def _begun(self, index: int, early):
        if not any(map(self.parts.is_late, self.parts.program.blocks[index].instrs)):
            return early

        def begun(memory, group, registers):
            number = self.numbers.setdefault(group, len(self.numbers))
            memory.known = []
            self.steps.append((self.parts.late_functions[index], memory.known, number))
            if len(self.steps) > STEPS:
                raise CannotSplit
            return early(memory, group, registers)

        return begun

    def _merge(self, groups: list[Group], live: frozenset[str]) -> Group:
        if live & self.parts.late:
            raise CannotSplit
        return super()._merge(groups, live)


class _Splits(Observer):
    def __init__(self, late: set[str]):
        self.late = late

    def branched(self, machine, group, block, guard, uniform):
        blocks = machine.program.blocks
        if not uniform and (blocks[block.target].live_in | blocks[block.next].live_in) & self.late:
            raise CannotSplit


class _Finder(LoadStoreUnit):
    """Finds the places of loads and stores, and keeps what late instructions need."""

    def __init__(self, machine: Machine, regions: list[Region]):
        super().__init__(machine)
        self.regions, self.known, self.bytes = regions, [], 0

    def keep(self, value, size: int = 0) -> None:
        self.bytes += size or value.nbytes
        if self.bytes > BYTES:
            raise CannotSplit
        self.known.append(value)

    def place(self, group, address, offset: int, dtype: str, count: int) -> None:
        access = self.prepare(group, "global", address)
        width = np.dtype(dtype).itemsize
        number = next((i for i, known in enumerate(self.regions) if known is access.region), None)
        end = access.high + offset + width * count
        if number is None or access.low + offset < 0 or end > self.regions[number].size:
            raise CannotSplit  # lanes point into several regions
        first = (access.offset + offset) // width
        indices = [first + i for i in range(count)]
        self.keep((number, dtype, indices), count * first.nbytes)
