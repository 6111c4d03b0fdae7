"""Conflicts in global memory: two threads touch a word in one launch, one of them writes,
and nothing orders them.

Blocks run in any order on a GPU, so such a kernel may give one result here and another there. It is a
warning: programs exist that live with it. What orders two accesses: a barrier of their block, a ``syncwarp``
of their warp, a barrier of the grid, or a device-wide fence in the writer's block followed by an atomic or
volatile access in the other's (a flag, a counter, a lock; which of them is not checked, so this errs towards
silence). Atomics do not conflict with each other or with reads; plain writes conflict with arithmetic
atomics, as where one thread zeroes a sum that others already add to. A write that leaves the word as it was
is benign.

Only arrays that the kernel's stores can reach are watched (``ptx.stored``). While each thread of the launch
keeps to words of its own, a region needs no more than a list of the stretches that were touched; tables, one
entry a word, are kept from the first access that may meet another.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.observer import Observer
from warplab.simt.ptx.effects import effects_of
from warplab.simt.sanitizer.races import cell_size

THREAD_BITS = 32
THREAD = (1 << THREAD_BITS) - 1
SPAN = 4  # a stretch of this many cells a lane is checked for double use by marking its cells
# accesses that are made to be met by other threads
ORDERING = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
RELEASE = {"release", "acq_rel"}
# of atomics; cas and exch make locks, which plain stores may open
ARITHMETIC = {"add", "min", "max", "and", "or", "xor", "inc", "dec"}
VERB = {"read": "reads", "write": "writes", "atomic": "updates atomically"}


class GlobalConflict(UserWarning):
    """Two threads touch one word of global memory in a launch, one writes,
    and nothing says who comes first.
    """


@dataclass
class Touch:
    """One request: the lanes of a chunk whose first thread is ``start`` touch which bytes of a region, how,
    and when.
    """

    site: int
    what: str
    start: int
    lanes: np.ndarray
    base: np.ndarray
    offset: int
    width: int
    time: int
    values: tuple | None = None

    @cached_property
    def thread(self) -> np.ndarray:
        """Threads, numbered through the grid, ascending."""
        return self.lanes + self.start

    @cached_property
    def at(self) -> np.ndarray:
        """The first byte that each touches."""
        return np.broadcast_to(self.base + self.offset, self.lanes.shape)

    def is_of(self, other: "Touch") -> bool:
        """Whether each thread touches the same bytes as in another request."""
        same = self.start == other.start and self.width == other.width and _same(self.lanes, other.lanes)
        return same and (
            _same(self.base, other.base) if self.offset == other.offset else _same(self.at, other.at)
        )


@dataclass
class Stretch:
    """Bytes ``low`` to ``high`` of a region, in which each cell belongs to one thread:
    the last touch of each kind.
    """

    low: int
    high: int
    touches: dict[str, Touch]


@dataclass
class Watch:
    """What is known of one region: disjoint stretches in order, or tables once threads have met."""

    region: object
    stretches: list[Stretch] = field(default_factory=list)
    lows: list[int] = field(default_factory=list)
    tables: RegionTables | None = None

    def stays_apart(self, touch: Touch, access) -> bool:
        """Note the touch among the stretches if each of its cells is one thread's alone.

        False if that cannot be said.
        """
        low, high = access.low + touch.offset, access.high + touch.offset + touch.width
        i = bisect_right(self.lows, low)
        stretch = self.stretches[i - 1] if i else None
        if stretch is not None and (stretch.low, stretch.high) == (low, high):
            if not touch.is_of(next(iter(stretch.touches.values()))):
                return False
        elif self._is_free(i, low, high):
            if not _distinct(touch, access, low, high):
                return False
            stretch = Stretch(low, high, {})
            self.stretches.insert(i, stretch)
            self.lows.insert(i, low)
        else:
            return False
        stretch.touches[touch.what] = touch
        return True

    def _is_free(self, i: int, low: int, high: int) -> bool:
        """Whether no stretch reaches into bytes ``low`` to ``high``, before which ``i`` stretches begin."""
        ends_before = i == 0 or self.stretches[i - 1].high <= low
        return ends_before and (i == len(self.lows) or self.lows[i] >= high)

    def tabulate(self, unit: int) -> None:
        """From stretches to tables."""
        self.tables = RegionTables(self.region, unit)
        for stretch in self.stretches:
            for touch in stretch.touches.values():
                self.tables.record(touch)
        self.stretches, self.lows = [], []


@dataclass
class Conflict:
    """The first conflict between two source lines, ``count`` of how many words there were,
    and where the later access stands.
    """

    text: str
    advice: str
    file: str
    line: int
    count: int = 0

    def __str__(self) -> str:
        said = f"{self.text}, and nothing orders the two; {self.count:,} such conflicts"
        return f"{said}\n  Look at: {self.advice}"


class GlobalRaces(Observer):
    """Observer. ``found_all`` after the launch: one Conflict for each pair of source lines that met."""

    def __init__(self):
        self.now = 0
        self.watches: dict[int, Watch | None] = {}
        self.found: dict[frozenset[str], Conflict] = {}
        self.kinds: dict[int, str] = {}
        self.barrier_at = self.grid_barrier_at = 0
        self.warp_at: np.ndarray | None = None
        self.fence_at: np.ndarray | None = None  # by block of the grid; None: no fence yet
        self.meeting_at: np.ndarray | None = None  # the block's last atomic or volatile access
        self.reachable: set[int] | None | str = "unknown"

    @property
    def found_all(self) -> list[Conflict]:
        return list(self.found.values())

    def barrier(self, machine, block):
        self.now += 1
        self.barrier_at = self.now
        if "grid" in block.branch.mods:
            self.grid_barrier_at = self.now

    def warp_barrier(self, machine, group):
        self.now += 1
        if self.warp_at is None:
            self.warp_at = np.zeros(machine.launch.blocks * -(-machine.launch.threads // 32), np.int64)
        first = machine.first_block * -(-machine.launch.threads // 32)
        self.warp_at[first + group.warp] = self.now

    def fence(self, machine, group):
        self._mark("fence_at", machine, group)

    def _mark(self, name: str, machine, group) -> None:
        self.now += 1
        if getattr(self, name) is None:
            setattr(self, name, np.zeros(machine.launch.blocks, np.int64))
        first = machine.first_block
        blocks = (
            slice(first, first + machine.blocks) if group.full else first + machine.block_of_lane[group.lanes]
        )
        getattr(self, name)[blocks] = self.now

    def ordered(self, machine, thread, rival, time) -> np.ndarray:
        """Whether the rival's access at ``time`` comes before what ``thread`` does now."""
        size = machine.launch.threads
        block, other = thread // size, rival // size
        out = (time < self.grid_barrier_at) | ((block == other) & (time < self.barrier_at))
        if self.warp_at is not None:
            warps = -(-size // 32)
            warp = block * warps + thread % size // 32
            out |= (warp == other * warps + rival % size // 32) & (time < self.warp_at[warp])
        if self.fence_at is not None and self.meeting_at is not None:
            out |= (self.fence_at[other] > time) & (self.meeting_at[block] >= time)
        return out

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "global" or access.region is None:
            return
        kind = self.kinds.get(site) or self._kind(machine, site)
        if kind != "plain":
            if kind == "release":
                self.fence(machine, group)
            self._mark("meeting_at", machine, group)
            if what != "atomic" or not ARITHMETIC & set(machine.program.sites[site].mods):
                return
        base = access.region.base
        if base not in self.watches:
            self.watches[base] = Watch(access.region) if self._may_be_written(machine, base) else None
        watch = self.watches[base]
        if watch is None:
            return
        self.now += 1
        touch = Touch(
            site,
            what,
            machine.first_block * machine.launch.threads,
            group.lanes,
            access.offset,
            offset,
            width,
            self.now,
            values,
        )
        if watch.tables is None:
            if watch.stays_apart(touch, access):
                touch.values = None  # it is kept, they need not be
                return
            watch.tabulate(cell_size(machine.program, widest=8))
        watch.tables.enter(self, machine, touch)

    def _kind(self, machine, site: int) -> str:
        instr = machine.program.sites[site]
        mods = set(instr.mods)
        kind = (
            "release"
            if mods & RELEASE
            else "meeting"
            if effects_of(instr, INSTRUCTIONS).memory == "atomic" or mods & ORDERING
            else "plain"
        )
        self.kinds[site] = kind
        return kind

    def _may_be_written(self, machine, base: int) -> bool:
        if self.reachable == "unknown":
            self.reachable = _written_regions(machine)
        return self.reachable is None or base in self.reachable

    def report(
        self, machine, region, touch: Touch, lane: int, rival: int, did: str, there: int, count: int
    ) -> None:
        """Note a conflict: the lane's thread now, the rival's with instruction ``there`` before."""
        program, size = machine.program, machine.launch.threads
        here, before = program.line_of_site(touch.site), program.line_of_site(there)
        key = frozenset({here, before})
        if key not in self.found:
            thread = int(touch.thread[lane])
            element = f"element {int(touch.at[lane]) // region.itemsize} of {region.label}"
            apart = thread // size != rival // size
            advice = (
                "blocks run in any order: write to another array, combine with cuda.atomic, "
                "or launch two kernels"
                if apart
                else "put a barrier, cuda.syncthreads(), between the two, or write to another array"
            )
            instr = program.sites[touch.site]
            self.found[key] = Conflict(
                f"global-memory conflict in kernel {program.name}, {here}: {machine.name_of(thread)} "
                f"{VERB[touch.what]} {element} that "
                f"{machine.name_of(rival)} {VERB[did]} ({before})",
                advice,
                program.file_of(instr.file),
                instr.line,
            )
        self.found[key].count += count


class RegionTables:
    """For each cell of a region: who wrote it last, who updated it atomically,
    and the last two who read it.

    And when, as ``time << 32 | thread``.
    """

    def __init__(self, region, unit: int):
        self.region, self.unit, self.shift = region, unit, unit.bit_length() - 1
        self.last: dict[str, np.ndarray] = {}
        self.site_at: dict[int, int] = {}

    def table(self, name: str) -> np.ndarray:
        if name not in self.last:
            self.last[name] = np.zeros(self.region.size // self.unit + 1, np.int64)
        return self.last[name]

    def cells(self, touch: Touch):
        first = touch.at >> self.shift
        return [first + part if part else first for part in range(max(1, touch.width // self.unit))]

    def record(self, touch: Touch, cells=None) -> None:
        self.site_at[touch.time] = touch.site
        token = touch.time << THREAD_BITS | touch.thread
        for cell in cells or self.cells(touch):
            if touch.what == "read":
                self._record_read(cell, token)
            else:
                self.table(touch.what)[cell] = token

    def _record_read(self, cell, token) -> None:
        table, second = self.table("read"), self.table("read by another")
        before = table[cell]
        table[cell] = token
        foreign = (before != 0) & ((before ^ token) & THREAD != 0)
        if foreign.any():
            second[cell[foreign]] = before[foreign]
        lost = table[cell] != token
        if lost.any():
            second[cell[lost]] = token[lost]

    def enter(self, races: GlobalRaces, machine, touch: Touch) -> None:
        """Check one request against all before it and within itself, then record it."""
        against = {
            "read": ("write",),
            "atomic": ("write",),
            "write": ("write", "read", "read by another", "atomic"),
        }[touch.what]
        cells = self.cells(touch)
        for name in against:
            if name in self.last:
                for part, cell in enumerate(cells):
                    self._meet(races, machine, touch, self.last[name][cell], name.split()[0], part)
        self.record(touch, cells)
        if touch.what != "write":
            return
        token = touch.time << THREAD_BITS | touch.thread
        for part, cell in enumerate(cells):
            lost = np.flatnonzero(self.last["write"][cell] != token)
            if lost.size:
                winner = self.last["write"][cell[lost]] & THREAD
                bits = self._bits(touch, part)
                lost = lost[bits[lost] != bits[np.searchsorted(touch.thread, winner)]]
            if lost.size:
                rival = int(self.last["write"][cell[lost[0]]] & THREAD)
                races.report(machine, self.region, touch, int(lost[0]), rival, "write", touch.site, lost.size)

    def _meet(self, races, machine, touch, token, did: str, part: int) -> None:
        if not token.any():
            return
        rival = token & THREAD
        bad = np.flatnonzero((token != 0) & (rival != touch.thread))
        if not bad.size:
            return
        bad = bad[~races.ordered(machine, touch.thread[bad], rival[bad], token[bad] >> THREAD_BITS)]
        if bad.size and touch.what == "write" and did != "atomic":
            bad = bad[self._bits(touch, part)[bad] != self._now(touch, part, bad)]
        if bad.size:
            first = int(bad[0])
            there = self.site_at[int(token[first]) >> THREAD_BITS]
            races.report(machine, self.region, touch, first, int(rival[first]), did, there, bad.size)

    def _value(self, touch: Touch, part: int):
        """Number of the value that lies in a part of the access, and its bytes."""
        parts = max(1, touch.width // self.unit)
        return part * len(touch.values) // parts, touch.width // len(touch.values)

    def _bits(self, touch: Touch, part: int) -> np.ndarray:
        """The bits that each lane writes."""
        number, width = self._value(touch, part)
        return np.broadcast_to(touch.values[number].view(f"u{width}"), touch.thread.shape)

    def _now(self, touch: Touch, part: int, lanes) -> np.ndarray:
        """The bits that are there before the write."""
        number, width = self._value(touch, part)
        return self.region.view(f"u{width}")[touch.at[lanes] // width + number]


def _same(known: np.ndarray, new: np.ndarray) -> bool:
    return known is new or (known.size == new.size and bool((known == new).all()))


def _distinct(touch: Touch, access, low: int, high: int) -> bool:
    """Whether each lane's bytes are its own; False also where that would be dear to find out."""
    lanes, width, offsets = touch.lanes.size, touch.width, access.offset
    if lanes == 1:
        return True
    if offsets.size == 1:
        return False
    key = ("distinct", width)
    if key not in access.pattern:
        found = bool((offsets[1:] - offsets[:-1]).min() >= width)
        if (
            not found
            and (high - low) // width <= SPAN * lanes
            and not (access.bits | touch.offset) & (width - 1)
        ):
            marks = np.zeros((high - low) // width, bool)
            marks[(offsets - (low - touch.offset)) // width] = True
            found = int(np.count_nonzero(marks)) == lanes
        access.pattern[key] = found
    return access.pattern[key]


def _written_regions(machine) -> set[int] | None:
    """Bases of the regions that the program's stores can reach with this launch's arguments; None for all."""
    program, space = machine.program, machine.space
    if program.stores is None:
        return None
    bases: set[int] = set()
    for origins in program.stores:
        known = False
        for name, offset in origins:
            region = program.globals.get(name)
            if region is None and name in machine.launch.params:
                value = machine.launch.params[name][offset : offset + 8]
                region = space.find(int.from_bytes(bytes(value), "little")) if len(value) == 8 else None
            elif region is None:  # a variable in shared or local memory
                known = True
            if region is not None:
                bases.add(region.base)
                known = True
        if not known:
            return None
    return bases
