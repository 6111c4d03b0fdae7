"""Conflicts in global memory: two threads touch a word in one launch, one of them writes,
and nothing orders them.

Blocks run in any order on a GPU, so such a kernel may give one result here and another there. It is a
warning: programs exist that live with it. What clashes and what orders two accesses is said in ``ordering``;
a fence reaches other blocks if its scope is wider than the block. A write that leaves the word as it was is
benign, an atomic never is.

Only arrays that the kernel's stores and atomics can reach are watched (``ptx.stored``). While each thread of
the launch keeps to words of its own, a region needs no more than a list of the stretches that were touched;
tables, one entry a word, are kept from the first access that may meet another. A cell's summary is of those
who touched it and are not yet ordered before a later access: one thread, or several of one warp, of one
block, or of several blocks, with the last two of them.

Triton spreads a tensor over a block's threads, and one that is smaller than the block is held by several:
all of them read an element, and one of them, for all, writes. What the others read is then used by nobody.
So with ``replicas`` a thread's write does not clash with what threads of its block have read in the very
request in which it read the element itself.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.errors import Act
from warplab.simt.observer import Observer
from warplab.simt.ptx.effects import effects_of
from warplab.simt.sanitizer.ordering import (
    BLOCK_WRITE,
    CLASHES,
    READ,
    STRONG_KINDS,
    STRONG_WRITE,
    WRITE,
    Kind,
    kind_of,
    verb,
)
from warplab.simt.sanitizer.races import barrier_at, cell_size
from warplab.simt.sanitizer.releases import Releases

THREAD_BITS = 32
THREAD = (1 << THREAD_BITS) - 1
SPAN = 4  # a stretch of this many cells a lane is checked for double use by marking its cells
ALONE, IN_WARP, IN_BLOCK, APART = range(4)  # how far apart those are who touched a cell


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
    kind: Kind
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
        stretch.touches[touch.kind.name] = touch
        return True

    def _is_free(self, i: int, low: int, high: int) -> bool:
        """Whether no stretch reaches into bytes ``low`` to ``high``, before which ``i`` stretches begin."""
        ends_before = i == 0 or self.stretches[i - 1].high <= low
        return ends_before and (i == len(self.lows) or self.lows[i] >= high)

    def tabulate(self, races: GlobalRaces, machine, unit: int) -> None:
        """From stretches to tables."""
        self.tables = RegionTables(self.region, unit)
        for stretch in self.stretches:
            for touch in stretch.touches.values():
                self.tables.record(races, machine, touch)
        self.stretches, self.lows = [], []


@dataclass
class Conflict:
    """The first conflict between two source lines, ``count`` of how many words there were,
    where the later access stands, and what the two threads did.
    """

    text: str
    advice: str
    file: str
    line: int
    acts: tuple[Act, ...]
    count: int = 0

    def __str__(self) -> str:
        plural = "" if self.count == 1 else "s"
        said = f"{self.text}, and nothing orders the two; {self.count:,} such conflict{plural}"
        return f"{said}\n  Look at: {self.advice}"


class GlobalRaces(Observer):
    """Observer. ``found_all`` after the launch: one Conflict for each pair of source lines that met.

    replicas: threads of a block may hold one element of a tensor together, as Triton's do.
    """

    def __init__(self, replicas: bool = False):
        self.replicas = replicas
        self.now = 0
        self.looked = False  # at values
        self.watches: dict[int, Watch | None] = {}
        self.found: dict[frozenset[str], Conflict] = {}
        self.kinds: dict[tuple[int, str], Kind] = {}
        self.barrier_at = self.grid_barrier_at = 0
        self.warp_at: np.ndarray | None = None
        self.releases: Releases | None = None  # from the first fence on, or the first barrier of some
        self.reachable: set[int] | None | str = "unknown"

    @property
    def found_all(self) -> list[Conflict]:
        return list(self.found.values())

    @property
    def values_mattered(self) -> bool:
        """Whether it follows from the values that were written that nothing, or what, was found."""
        return self.looked or bool(self.found)

    def barrier(self, machine, block):
        self.now += 1
        self.barrier_at = self.now
        grid = "grid" in block.branch.mods
        if grid:
            self.grid_barrier_at = self.now
        if self.releases is not None:
            self.releases.barrier(self.now, grid)

    def met(self, machine, lanes, together):
        self._begin(machine)
        self.now += 1
        self.releases.met(lanes + machine.first_block * machine.launch.threads, together, self.now)

    def warp_barrier(self, machine, group):
        self.now += 1
        if self.warp_at is None:
            self.warp_at = np.zeros(machine.launch.blocks * -(-machine.launch.threads // 32), np.int64)
        first = machine.first_block * -(-machine.launch.threads // 32)
        self.warp_at[first + group.warp] = self.now
        if self.releases is not None and self.releases.grain == 1:
            self.releases.met(self._threads(machine, group), group.warp, self.now)

    def fence(self, machine, group, wide):
        self._begin(machine)
        self.now += 1
        self.releases.fence(self._threads(machine, group), self.now, wide)

    def published(self, machine, group, knowledge):
        self.fence(machine, group, wide=False)

    def taken_over(self, machine, group, knowledge):
        self.now += 1
        if self.releases is not None:
            self.releases.take_all(self._threads(machine, group))

    def _begin(self, machine):
        if self.releases is None:
            moments = self.grid_barrier_at, self.barrier_at, self.warp_at
            self.releases = Releases(machine.launch, *moments)

    def _threads(self, machine, group) -> np.ndarray:
        return group.lanes + machine.first_block * machine.launch.threads

    def ordered(self, machine, thread, rival, time, far=ALONE) -> np.ndarray:
        """Whether what ``rival`` did at ``time`` comes before what ``thread`` does now, by barriers of all.

        ``far``: so do the accesses of others before it, who are so far apart.
        """
        size = machine.launch.threads
        same_block = thread // size == rival // size
        out = (time < self.grid_barrier_at) | (same_block & (time < self.barrier_at) & (far <= IN_BLOCK))
        if self.warp_at is not None:
            warp = _warp(thread, size)
            out |= (warp == _warp(rival, size)) & (time < self.warp_at[warp]) & (far <= IN_WARP)
        return out

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space == "local" or (space == "shared" and not machine.program.fences) or access.region is None:
            return
        kind = self.kinds.get((site, what)) or self._kind(machine, site, what)
        if kind.releases:
            self.fence(machine, group, kind.releases == "wide")
        self.now += 1
        if kind.strong and self.releases is not None:
            first = machine.first_block * machine.launch.threads
            self._at_flags(machine, access.region, group.lanes + first, access.offset + offset, width, site)
        if space == "shared":
            return
        base = access.region.base
        if base not in self.watches:
            self.watches[base] = Watch(access.region) if self._may_clash(machine, base) else None
        watch = self.watches[base]
        if watch is None:
            return
        touch = Touch(
            site,
            kind,
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
            watch.tabulate(self, machine, cell_size(machine.program, widest=8))
        watch.tables.enter(self, machine, touch)

    def _at_flags(self, machine, region, thread, at, width: int, site: int, sets=False) -> None:
        """Strong accesses to bytes ``at`` of a region. ``sets``: a plain store that counts as one."""
        instr = machine.program.sites[site]
        way = "store" if sets else effects_of(instr, INSTRUCTIONS).memory
        word = at >> 2
        if region is machine.shared:
            word = -1 - word - (machine.first_block * machine.shared_stride >> 2)
        else:
            word = word + (region.base >> 2)
        for part in range(max(1, width >> 2)):
            self.releases.strong(
                word + part,
                thread,
                self.now,
                reads=way != "store",
                writes=way != "load",
                tries="cas" in instr.mods,
                narrow="cta" in instr.mods,
            )

    def _kind(self, machine, site: int, what: str) -> Kind:
        kind = self.kinds[site, what] = kind_of(
            machine.program.sites[site], what, guesses=machine.program.guesses
        )
        return kind

    def _may_clash(self, machine, base: int) -> bool:
        if self.reachable == "unknown":
            self.reachable = _clashing_regions(machine)
        return self.reachable is None or base in self.reachable

    def report(
        self, machine, region, touch: Touch, lane: int, rival: int, did: str, there: int, count: int
    ) -> None:
        """Note a conflict: the lane's thread now, the rival's with instruction ``there`` before."""
        program = machine.program
        here, before = program.line_of_site(touch.site), program.line_of_site(there)
        key = frozenset({here, before})
        if key not in self.found:
            thread = int(touch.thread[lane])
            element = region.place(int(touch.at[lane]))
            instr = program.sites[touch.site]
            does, done = verb(instr, touch.kind.name), verb(program.sites[there], did)
            self.found[key] = Conflict(
                f"global-memory conflict in kernel {program.name}, {here}: {machine.name_of(thread)} "
                f"{does} {element} that "
                f"{machine.name_of(rival)} {done} ({before})",
                self._advice(machine, touch, thread, rival, did, there),
                program.file_of(instr.file),
                instr.line,
                (
                    machine.act_of(rival, program.sites[there], done, element),
                    machine.act_of(thread, instr, does, element),
                ),
            )
        self.found[key].count += count

    def _advice(self, machine, touch: Touch, thread: int, rival: int, did: str, there: int) -> str:
        """What to do about a conflict, in the words of the kernel's language."""
        where, size = machine.program.line_of_site(touch.site), machine.launch.threads
        barrier, atomic, fence = barrier_at(where), "cuda.atomic", "cuda.threadfence()"
        if self.replicas:
            barrier, atomic = "tl.debug_barrier()", "tl.atomic_add"
        elif ".cu:" in where:
            atomic, fence = "atomicAdd", "__threadfence()"
        if {touch.kind.name, did} <= {*STRONG_KINDS}:
            return f"the scope, .cta: it holds within one block, and others need {atomic} of the whole device"
        if thread // size == rival // size:
            if there == touch.site and touch.kind.name == WRITE == did:
                return f"let one of these threads write, give each its own element, or combine with {atomic}"
            return f"put a barrier, {barrier}, between the two, or write to another array"
        if self.releases is not None and not self.replicas:
            return (
                "the flag, lock or counter that lets the later one pass must be set behind the access of the "
                f"earlier one, with {fence} between the two, by that thread or by one that it has met at "
                f"{barrier}; and the later one waits for that very flag"
            )
        return (
            f"blocks run in any order: write to another array, combine with {atomic}, or launch two kernels"
        )


class RegionTables:
    """For each cell of a region and each kind of access who touched it, in summary: the last, the last but
    for that one, both as ``time << 32 | thread``, and how far apart they all are.
    """

    def __init__(self, region, unit: int):
        self.region, self.unit, self.shift = region, unit, unit.bit_length() - 1
        self.last: dict[str, np.ndarray] = {}
        self.second: dict[str, np.ndarray] = {}
        self.far: dict[str, np.ndarray] = {}
        self.met: set[str] = set()  # kinds of access of which a cell has more than one thread's
        self.site_at: dict[int, int] = {}
        self.reads: dict[int, Touch] = {}  # by time, where threads may hold an element together

    def cells(self, touch: Touch):
        first = touch.at >> self.shift
        return [first + part if part else first for part in range(max(1, touch.width // self.unit))]

    def record(self, races: GlobalRaces, machine, touch: Touch, cells=None) -> list[np.ndarray]:
        """Put the lanes in the place of those who are ordered before them, and with the others.

        Returns, for each part of the access, the lanes whose cell another lane of the request touches too.
        """
        name = touch.kind.name
        if name not in self.last:
            cell_count = self.region.size // self.unit + 1
            self.last[name], self.second[name] = np.zeros((2, cell_count), np.int64)
            self.far[name] = np.zeros(cell_count, np.int8)
        last = self.last[name]
        self.site_at[touch.time] = touch.site
        if races.replicas and name == READ:
            self.reads[touch.time] = touch
        token = touch.time << THREAD_BITS | touch.thread
        doubles = []
        for cell in cells or self.cells(touch):
            before = last[cell]
            last[cell] = token
            met = np.flatnonzero((before ^ token) & THREAD) if before.any() else before[:0]
            if met.size or name in self.met:
                self._join(races, machine, touch, cell, before)
            lost = np.flatnonzero(last[cell] != token)
            if lost.size:
                at = cell[lost]
                apart = _far(touch.thread[lost], last[at] & THREAD, machine.launch.threads)
                np.maximum.at(self.far[name], at, apart)
                self.second[name][at] = token[lost]
                self.met.add(name)
            doubles.append(lost)
        return doubles

    def _join(self, races: GlobalRaces, machine, touch: Touch, cell, before) -> None:
        """Of the cells that others touched ``before``, with those who are not ordered before the request."""
        name = touch.kind.name
        second, far = self.second[name], self.far[name]
        so_far = far[cell]
        far[cell] = ALONE
        rival = before & THREAD
        joins = np.flatnonzero((before != 0) & ((rival != touch.thread) | (so_far > ALONE)))
        if not joins.size:
            return
        here, rival, apart, time = (
            touch.thread[joins],
            rival[joins],
            so_far[joins],
            before[joins] >> THREAD_BITS,
        )
        late = ~races.ordered(machine, here, rival, time, apart)
        if races.releases is not None:
            late &= ~races.releases.before(here, rival, time, touch.kind.strong)
            kept = joins[~late & (apart > ALONE)]
            kept = kept[self._unordered(races, machine, touch.thread[kept], second[cell[kept]], name)]
            far[cell[kept]] = so_far[kept]
        if late.any():
            self.met.add(name)
            joins, here, rival, apart = joins[late], here[late], rival[late], apart[late]
            far[cell[joins]] = np.maximum(apart, _far(here, rival, machine.launch.threads))
            other = rival != here
            second[cell[joins[other]]] = before[joins[other]]

    def enter(self, races: GlobalRaces, machine, touch: Touch) -> None:
        """Check one request against all before it and within itself, then record it."""
        cells = self.cells(touch)
        if races.releases is not None and touch.kind.name == WRITE:
            if self._opens(races, machine, touch, cells):
                touch.kind = Kind(STRONG_WRITE)
                races._at_flags(machine, self.region, touch.thread, touch.at, touch.width, touch.site, True)
        for name in CLASHES[touch.kind.name]:
            if name in self.last:
                for part, cell in enumerate(cells):
                    self._meet(races, machine, touch, cell, name, part)
        doubles = self.record(races, machine, touch, cells)
        name = touch.kind.name
        if name not in (WRITE, BLOCK_WRITE):
            return
        for part, (cell, lost) in enumerate(zip(cells, doubles)):
            if not lost.size:
                continue
            winner = self.last[name][cell[lost]] & THREAD
            if name == WRITE:
                races.looked = True
                bits = self._bits(touch, part)
                lost = lost[bits[lost] != bits[np.searchsorted(touch.thread, winner)]]
            else:
                size = machine.launch.threads
                lost = lost[touch.thread[lost] // size != winner // size]
            if lost.size:
                rival = int(self.last[name][cell[lost[0]]] & THREAD)
                races.report(machine, self.region, touch, int(lost[0]), rival, name, touch.site, lost.size)

    def _meet(self, races: GlobalRaces, machine, touch: Touch, cell, name: str, part: int) -> None:
        token = self.last[name][cell]
        if not token.any():
            return
        foreign = (token ^ touch.thread) & THREAD != 0
        foreign &= token != 0
        if name in self.met:
            foreign |= self.far[name][cell] > ALONE
        bad = np.flatnonzero(foreign)
        if not bad.size:
            return
        thread, token, far = touch.thread[bad], token[bad], self.far[name][cell[bad]]
        clash = ~races.ordered(machine, thread, token & THREAD, token >> THREAD_BITS, far)
        mine = token & THREAD == thread
        token[mine] = self.second[name][cell[bad[mine]]]
        rival, time = token & THREAD, token >> THREAD_BITS
        if races.releases is not None and clash.any():
            clash &= ~races.releases.before(thread, rival, time, name in STRONG_KINDS)
            hidden = np.flatnonzero(~clash & (far > ALONE) & ~mine)
            tokens = self.second[name][cell[bad[hidden]]]
            late = self._unordered(races, machine, thread[hidden], tokens, name)
            hidden, tokens = hidden[late], tokens[late]
            rival[hidden], time[hidden] = tokens & THREAD, tokens >> THREAD_BITS
            clash[hidden] = True
            if touch.kind.by_hand and name == WRITE:
                set_by_hand = clash & races.releases.has_fenced(rival)
                if set_by_hand.any():
                    races.releases.take(thread[set_by_hand], rival[set_by_hand])
                    clash &= ~set_by_hand
        if touch.kind.strong and name in STRONG_KINDS:  # the scope of one is its block
            clash &= thread // machine.launch.threads != rival // machine.launch.threads
        if clash.any() and touch.kind.name == WRITE and name not in (STRONG_WRITE, BLOCK_WRITE):
            races.looked = True
            clash &= self._bits(touch, part)[bad] != self._now(touch, part, bad)
        if races.replicas and name == READ:
            same_block = thread // machine.launch.threads == rival // machine.launch.threads
            clash &= ~(same_block & self._read_too(thread, cell[bad], time))
        found = np.flatnonzero(clash)
        if found.size:
            i = int(found[0])
            there = self.site_at[int(time[i])]
            races.report(machine, self.region, touch, int(bad[i]), int(rival[i]), name, there, found.size)

    def _unordered(self, races: GlobalRaces, machine, thread, token, name: str) -> np.ndarray:
        """Whether nothing puts the access of the last but one before what each thread does now."""
        rival, time = token & THREAD, token >> THREAD_BITS
        before = (token == 0) | (rival == thread) | races.ordered(machine, thread, rival, time)
        return ~(before | races.releases.before(thread, rival, time, name in STRONG_KINDS))

    def _read_too(self, thread: np.ndarray, cell: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Whether each thread itself read its cell in the request of that time."""
        out = np.zeros(thread.size, bool)
        for moment in np.unique(time).tolist():
            touch = self.reads[moment]
            at = np.flatnonzero(time == moment)
            place = np.minimum(np.searchsorted(touch.thread, thread[at]), touch.thread.size - 1)
            first = touch.at[place] >> self.shift
            within = (first <= cell[at]) & (cell[at] < first + max(1, touch.width // self.unit))
            out[at] = (touch.thread[place] == thread[at]) & within
        return out

    def _opens(self, races: GlobalRaces, machine, touch: Touch, cells) -> bool:
        """Whether a plain store behind a fence answers those who look at its cells for a flag or a lock."""
        strong = self.last.keys() & set(STRONG_KINDS)
        if not strong or not races.releases.has_fenced(touch.thread).all():
            return False
        looks = np.zeros(touch.thread.size, bool)
        for name in strong:
            moments, which = np.unique(self.last[name][cells[0]] >> THREAD_BITS, return_inverse=True)
            looking = [t > 0 and _looks(machine.program.sites[self.site_at[t]]) for t in moments.tolist()]
            looks |= np.array(looking)[which]
        return bool(looks.all())

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


def _looks(instr) -> bool:
    """Whether an instruction looks at a flag or a lock, which a plain store may set."""
    what = "read" if effects_of(instr, INSTRUCTIONS).memory == "load" else "atomic"
    return kind_of(instr, what).by_hand


def _warp(thread: np.ndarray, size: int) -> np.ndarray:
    """Number of a thread's warp in the grid, for blocks of ``size`` threads."""
    return thread // size * -(-size // 32) + thread % size // 32


def _far(thread: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """How far apart two threads of the grid are."""
    blocks, warps = thread // size != other // size, _warp(thread, size) != _warp(other, size)
    return ((thread != other).astype(np.int8) + warps + blocks).astype(np.int8)


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


def _clashing_regions(machine) -> set[int] | None:
    """Bases of the regions that the program, with this launch's arguments, can reach with plain stores, or
    with atomics and with loads too; None for all.
    """
    stored, updated = _reached(machine, "store"), _reached(machine, "atomic")
    if stored is None or not (updated is None or updated):
        return stored
    if any("cta" in instr.mods for instr in machine.program.sites):  # scopes may be too narrow
        return None if updated is None else stored | updated
    loaded = _reached(machine, "load")
    if updated is None:
        return None if loaded is None else stored | loaded
    return stored | (updated if loaded is None else updated & loaded)


def _reached(machine, way: str) -> set[int] | None:
    """Bases of the regions that accesses of one way can reach; None for all."""
    program, space = machine.program, machine.space
    if program.touched[way] is None:
        return None
    bases: set[int] = set()
    for origins in program.touched[way]:
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
