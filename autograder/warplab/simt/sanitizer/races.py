"""The race detector: two threads access a word, at least one writes, and neither access happens before the
other.

``kinds`` says which accesses clash, ``vector_clocks`` which happen before others. A race in shared memory
stops the launch. In global memory it is a warning, because some working programs have benign races; blocks
run in any order on a GPU, so the result of such a kernel may differ from the engine's.

Shadow memory keeps two accesses for each cell and kind of access: the last, and one by the most distant other
thread (in another block, else in another warp) that is not ordered before it. This finds every race in
kernels that synchronise with whole-block barriers, grid barriers and ``syncwarp`` alone; with flags, a race
with a third thread may be missed.

Shadow memory is allocated at the first access that may clash with an earlier one. Before that a list of
requests is enough: only reads, only atomics, or accesses in which each cell belongs to one thread. So correct
tiled kernels pay almost nothing. In global memory only arrays that the kernel's stores and atomics can reach
are watched (``ptx.stored``).

Writing the value that is already there is benign: towards other writers in shared memory, towards all
accesses in global memory. In a launch with flags, a plain access to a word that others access strongly counts
as strong, because programs unlock a lock or reset a flag by a plain store.

With ``replicas``, several threads may hold the same element of a tensor, as in Triton: all of them read it;
in shared memory all write it by one instruction, in global memory one of them does. Their values may differ
in the last bit, if the compiler fused one of them into an FMA.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from warplab.simt.engine.address_space import Access, Region
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.errors import Act, SharedRace
from warplab.simt.observer import Observer
from warplab.simt.ptx.effects import effects_of
from warplab.simt.sanitizer.kinds import (
    BLOCK_WRITE,
    CLASHES,
    READ,
    STRONG_KINDS,
    STRONG_WRITE,
    VOLATILES,
    WRITE,
    Kind,
    kind_of,
    verb,
)
from warplab.simt.sanitizer.vector_clocks import THREAD, THREAD_BITS, Clocks, warp_of
from warplab.simt.sanitizer.visits import Visits

SPAN = 4  # cells a lane that a request may span to be checked for cells used twice by marking its cells
LONGEST_LOG = 1 << 24  # lanes of the requests in a list before it is replaced by shadow memory


class GlobalConflict(UserWarning):
    """Two threads of a launch access one word of global memory, one writes, and nothing orders the two."""


@dataclass(slots=True)
class Touch:
    """One request at a ``time`` of the clocks: ``width`` bytes a lane, at the addresses of ``access`` plus
    ``offset``. ``start`` is the number of lane 0's thread in the grid. All bytes are in [``low``, ``high``),
    counted within the block for shared memory.
    """

    site: int
    kind: Kind
    start: int
    lanes: np.ndarray
    access: Access
    region: Region
    offset: int
    width: int
    time: int
    values: tuple[np.ndarray, ...]  # of a write
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self):
        self.low, self.high = self.access.low + self.offset, self.access.high + self.offset + self.width

    @property
    def thread(self) -> np.ndarray:
        return self.lanes + self.start

    @property
    def at(self) -> np.ndarray:
        """The first byte that each lane touches."""
        return np.broadcast_to(self.access.offset + self.offset, self.lanes.shape)

    def is_of(self, other: Touch) -> bool:
        """Whether each thread touches the same bytes as in another request."""
        if (self.start, self.width) != (other.start, other.width) or not _same(self.lanes, other.lanes):
            return False
        same_access = self.access is other.access and self.offset == other.offset
        return same_access or _same(self.at, other.at)

    def is_distinct(self) -> bool:
        """Whether no two lanes access the same bytes; False also where finding out would cost too much."""
        lanes, offsets, key = self.lanes.size, self.access.offset, ("distinct", self.width)
        if lanes == 1 or offsets.size == 1:
            return lanes == 1
        pattern = self.access.pattern
        if key not in pattern:
            pattern[key] = bool((offsets[1:] - offsets[:-1]).min() >= self.width) or self._marks()
        return pattern[key]

    def _marks(self) -> bool:
        """``is_distinct`` by marking the accessed cells, if they are close together and aligned."""
        offsets, low = self.access.offset, int(self.access.offset.min())
        span = (int(offsets.max()) - low) // self.width + 1
        if span > SPAN * self.lanes.size or (self.access.bits | self.offset) & (self.width - 1):
            return False
        marks = np.zeros(span, bool)
        marks[(offsets - low) // self.width] = True
        return int(np.count_nonzero(marks)) == self.lanes.size


@dataclass
class Conflict:
    """The first conflict in global memory between two source lines: its ``text``, the ``file`` and ``line``
    of the later access, and what the two threads did. ``count``: how many such conflicts there were.
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


class Races(Observer):
    """Observer that raises SharedRace. After the launch, ``conflicts`` has one Conflict for each pair of
    source lines whose accesses to global memory race. ``values_mattered``: whether the findings depend on
    written values, so that another launch of the same kernel may have others.
    """

    def __init__(self, replicas: bool = False):
        self.replicas = replicas
        self.clocks = Clocks()
        self.values_mattered = False
        # by the base of the region, 0 for shared memory; None: nothing can clash there
        self.shadows: dict[int, Shadow | None] = {}
        self.kinds: dict[tuple[int, str, str], Kind] = {}
        self.found: dict[frozenset[str], Conflict] = {}
        self.visits: Visits | None = None  # those of the running chunk of blocks
        self.written: set[int] | None = None  # bases of the regions that the kernel can write, None: all
        self.looked_up = False  # whether ``written`` has been determined

    @property
    def conflicts(self) -> list[Conflict]:
        return list(self.found.values())

    def barrier(self, machine, block):
        self.clocks.barrier("grid" in block.branch.mods)
        for shadow in self.shadows.values():
            own = shadow is not None and shadow.shared and machine.cluster_size == 1  # to one block
            if shadow is not None and (own or "grid" in block.branch.mods):
                shadow.start()

    def warp_barrier(self, machine, group):
        self.clocks.warp_barrier(machine.launch, self._threads(machine, group.lanes))

    def met(self, machine, lanes, together):
        self.clocks.met(machine.launch, self._threads(machine, lanes), together)

    def fence(self, machine, group, wide):
        self.clocks.fence(machine.launch, self._threads(machine, group.lanes), wide)

    def arrived(self, machine, lanes, phases, relaxed=False):
        self.clocks.arrive(machine.launch, self._threads(machine, lanes), phases, relaxed)

    def waited(self, machine, lanes, phases):
        self.clocks.wait(machine.launch, self._threads(machine, lanes), phases)

    def visited(self, machine, group, site, access, offset):
        self._visits_of(machine).add(group, site, access)

    def left(self, machine, blocks):
        if self.visits is not None:
            self.visits.leave(blocks)

    def _visits_of(self, machine) -> Visits:
        if self.visits is None:
            self.visits = Visits(machine, self.clocks)
        return self.visits

    def done(self, machine):
        self.visits = None
        self.shadows.pop(0, None)

    def _threads(self, machine, lanes) -> np.ndarray:
        return lanes + machine.first_block * machine.launch.threads

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Tell the clocks of the access (its fence, its flag, its visit), and check it in shadow memory."""
        if space == "local":
            return
        clocks = self.clocks
        kind = self.kinds.get((site, what, space))
        if kind is None:
            kind = self.kinds[site, what, space] = kind_of(machine.program, site, what, space)
        if space == "cluster":  # a strong access after a fence is a flag, for which some thread waits
            visits = self._visits_of(machine)
            visits.add(group, site, access, lasts=not (kind.strong and clocks.fenced))
        if kind.releases:
            self.fence(machine, group, kind.releases == "wide")
        clocks.now += 1
        shadow = self.shadows.get(access.region.base)
        if shadow is None:
            if access.region.base in self.shadows:
                return
            shadow = self._watch(machine, access.region)
        start = machine.first_block * machine.launch.threads
        touch = Touch(
            site, kind, start, group.lanes, access, access.region, offset, width, clocks.now, values or ()
        )
        if kind.strong and clocks.fenced:
            self.at_flags(machine, touch, effects_of(machine.program.sites[site], INSTRUCTIONS).memory)
        if shadow is not None:
            shadow.add(touch)

    def read_ended(self, machine, group, site, access, width):
        self.accessed(machine, group, site, access, 0, width, "shared", "read", None)

    def _watch(self, machine, region: Region) -> Shadow | None:
        """Shadow memory for a region, None if nothing can clash there."""
        if not self.looked_up:
            self.written, self.looked_up = _written_regions(machine), True
        shared = region is machine.shared
        watched = shared or self.written is None or region.base in self.written
        shadow = self.shadows[region.base] = Shadow(self, machine, region) if watched else None
        return shadow

    def at_flags(self, machine, touch: Touch, way: str) -> None:
        """Tell the clocks of strong accesses to flags. ``way``: "load", "store" or "atomic"."""
        region, word = touch.region, touch.at >> 2
        if region is machine.shared:
            word = -1 - word - (machine.first_block * machine.shared_stride >> 2)
        else:
            word = word + (region.base >> 2)
        for part in range(max(1, touch.width >> 2)):
            self.clocks.at_flags(word + part, touch.thread, reads=way != "store", writes=way != "load")

    def report(self, machine, touch: Touch, lane: int, rival: int, there: tuple[str, int], count: int):
        """Report a race of ``lane`` with an earlier access ``there`` (kind, site) by the thread ``rival``.

        ``count``: lanes that race. Raises SharedRace in shared memory, else notes a Conflict.
        """
        if touch.region is machine.shared:
            _refuse(machine, touch, lane, rival, there, count)
        self.values_mattered = True
        program, (did, site) = machine.program, there
        here, before = program.line_of_site(touch.site), program.line_of_site(site)
        key = frozenset({here, before})
        if key not in self.found:
            thread, instr = int(touch.thread[lane]), program.sites[touch.site]
            element = touch.region.place(int(touch.at[lane]))
            does, done = verb(instr, touch.kind.name), verb(program.sites[site], did)
            text = (
                f"global-memory conflict in kernel {program.name}, {here}: {machine.name_of(thread)} "
                f"{does} {element} that {machine.name_of(rival)} {done} ({before})"
            )
            advice = self._advice(machine, touch, thread, rival, there)
            first = machine.act_of(rival, program.sites[site], done, element)
            acts = first, machine.act_of(thread, instr, does, element)
            file = program.file_of(instr.file)
            self.found[key] = Conflict(text, advice, file, instr.line, acts)
        self.found[key].count += count

    def _advice(self, machine, touch: Touch, thread: int, rival: int, there: tuple[str, int]) -> str:
        """What to do about a conflict, in the terms of the kernel's language."""
        where, size = machine.program.line_of_site(touch.site), machine.launch.threads
        barrier, atomic, fence = barrier_at(where), "cuda.atomic", "cuda.threadfence()"
        if self.replicas:
            barrier, atomic = "tl.debug_barrier()", "tl.atomic_add"
        elif ".cu:" in where:
            atomic, fence = "atomicAdd", "__threadfence()"
        did, site = there
        if {touch.kind.name, did} <= {*STRONG_KINDS}:
            return f"the scope, .cta: it holds within one block, and others need {atomic} of the whole device"
        if thread // size == rival // size:
            if site == touch.site and touch.kind.name == WRITE == did:
                return f"let one of these threads write, give each its own element, or combine with {atomic}"
            return f"put a barrier, {barrier}, between the two, or write to another array"
        if self.clocks.fenced and not self.replicas:
            return (
                "the flag, lock or counter that lets the later one pass must be set behind the access of the "
                f"earlier one, with {fence} between the two, by that thread or by one that it has met at "
                f"{barrier}; and the later one waits for that very flag"
            )
        return (
            f"blocks run in any order: write to another array, combine with {atomic}, or launch two kernels"
        )


class Shadow:
    """The accesses to a region: first a list of requests (``log``), then shadow memory."""

    def __init__(self, races: Races, machine, region: Region):
        self.races, self.machine, self.region = races, machine, region
        self.shared = region is machine.shared
        self.unit = cell_size(machine.program, widest=4 if self.shared else 8)
        self.shift = self.unit.bit_length() - 1
        # by kind of access and cell: ``time << 32 | thread`` of the last access and of another; 0: none
        self.last: dict[str, np.ndarray] = {}
        self.other: dict[str, np.ndarray] = {}
        self.start()

    def start(self) -> None:
        """Forget all accesses so far, because they happen before all that follow."""
        self.log: list[Touch] = []
        self.logged: set[str] = set()  # names of the kinds of access in the list
        self.seen: set[tuple] = set()
        self.low = self.high = self.kept = 0
        self.site_at: dict[int, int] = {}  # by time
        self.has_log = True  # no shadow memory yet

    def add(self, touch: Touch) -> None:
        """Check a request against earlier ones, by the list while that is enough, else by shadow memory."""
        if self.has_log:
            if self._is_harmless(touch):
                return
            self.has_log = False
            for earlier in self.log:
                self._record(earlier, self._cells(earlier))
            self.log, self.seen = [], set()
        self._enter(touch)

    def _is_harmless(self, touch: Touch) -> bool:
        """Append a request to the list and return True, if it cannot clash with those in the list."""
        if self.kept > LONGEST_LOG:
            return False
        name, clashes = touch.kind.name, CLASHES[touch.kind.name]
        if name not in clashes and self.logged.isdisjoint(clashes):
            key = id(touch.access), touch.offset, touch.width, name, self.races.clocks.synchronised
            if key not in self.seen:
                self.seen.add(key)
                self._append(touch)
            return True
        own_cells = name in clashes
        if self.shared or self._overlaps(touch):
            low, high = touch.low, touch.high
            for i in reversed(range(len(self.log))):
                other = self.log[i]
                if other.low >= high or low >= other.high:
                    continue
                clash, alike = other.kind.name in clashes, other.kind.name == name
                if not (clash or alike):
                    continue
                if touch.is_of(other):
                    own_cells |= clash
                    if alike:
                        self.kept -= self.log.pop(i).lanes.size
                elif clash:
                    return False
        if own_cells and not touch.is_distinct():
            return False
        self._append(touch)
        return True

    def _overlaps(self, touch: Touch) -> bool:
        return touch.low < self.high and self.low < touch.high

    def _append(self, touch: Touch) -> None:
        touch.values = ()
        self.log.append(touch)
        self.logged.add(touch.kind.name)
        if self.shared or self._overlaps(touch):
            self.kept += touch.lanes.size
        if not self.shared:
            first = len(self.log) == 1
            self.low = touch.low if first else min(self.low, touch.low)
            self.high = max(self.high, touch.high)

    def _cells(self, touch: Touch) -> list[np.ndarray]:
        first = touch.at >> self.shift
        return [first + part if part else first for part in range(max(1, touch.width // self.unit))]

    def _enter(self, touch: Touch) -> None:
        """Check a request against all earlier ones and its lanes against each other, and record it."""
        cells, clocks = self._cells(touch), self.races.clocks
        if clocks.fenced and touch.kind.name == WRITE and all(map(self._is_strong_elsewhere, cells)):
            touch.kind = Kind(STRONG_WRITE)
            self.races.at_flags(self.machine, touch, "store")
        for part, cell in enumerate(cells):
            for name in CLASHES[touch.kind.name]:
                if name in self.last:
                    self._compare(touch, cell, name, part)
        doubles = self._record(touch, cells)
        if touch.kind.name in (WRITE, BLOCK_WRITE):
            for part, (cell, lost) in enumerate(zip(cells, doubles)):
                if lost.size:
                    self._compare_within(touch, cell, lost, part)

    def _is_strong_elsewhere(self, cell: np.ndarray) -> bool:
        """Whether each cell has been accessed strongly, so that it is a flag, lock or counter."""
        strong = [self.last[name][cell] > 0 for name in STRONG_KINDS if name in self.last]
        return bool(strong) and bool(np.logical_or.reduce(strong).all())

    def _compare(self, touch: Touch, cell: np.ndarray, name: str, part: int) -> None:
        """Report the lanes that race with earlier accesses of the kind ``name``."""
        clocks = self.races.clocks
        if clocks.fenced and not touch.kind.strong and name in STRONG_KINDS:
            return
        last = self.last[name][cell]
        alone = self.shared and self.machine.cluster_size == 1
        before = clocks.barrier_at if alone else clocks.grid_barrier_at
        if not (last >> THREAD_BITS > before).any():
            return
        other = self.other[name][cell]
        thread = touch.thread
        race = self._races(touch, thread, last, name, part)
        rival = last
        if other.any():
            second = ~race & (other > 0)
            if second.any():
                second &= self._races(touch, thread, other, name, part)
                race, rival = race | second, np.where(second, other, last)
        found = np.flatnonzero(race)
        if found.size:
            i = int(found[0])
            time, who = divmod(int(rival[i]), 1 << THREAD_BITS)
            if alone and other[i]:
                who = -1
            there = name, self.site_at[time]
            self.races.report(self.machine, touch, i, who, there, found.size)

    def _races(self, touch: Touch, thread, token, name: str, part: int) -> np.ndarray:
        """Whether each lane's access races with the earlier one in ``token`` (``time << 32 | thread``)."""
        launch, clocks = self.machine.launch, self.races.clocks
        rival, time = token & THREAD, token >> THREAD_BITS
        race = (token > 0) & ~clocks.ordered(launch, thread, rival, time)
        if not race.any():
            return race
        same_block = thread // launch.threads == rival // launch.threads
        if touch.kind.name in VOLATILES and name in VOLATILES:
            race &= warp_of(thread, launch.threads) == warp_of(rival, launch.threads)
        elif touch.kind.strong and name in STRONG_KINDS:  # they clash, so one has the scope .cta
            race &= ~same_block
        if clocks.fenced and touch.kind.strong and name == WRITE:
            by_hand = race & clocks.has_fenced(rival)
            if by_hand.any():
                clocks.acquire_store(thread[by_hand], rival[by_hand])
                race &= ~by_hand
        if touch.kind.name == WRITE and name not in (STRONG_WRITE, BLOCK_WRITE) and race.any():
            if name == WRITE or not self.shared:
                self.races.values_mattered = True
                race &= self._changes(touch, part)
        if self.races.replicas and not self.shared and name == READ:
            race &= ~same_block
        if self.races.replicas and self.shared and name == WRITE:
            sites = [self.site_at.get(moment, -1) for moment in time.tolist()]
            race &= np.array(sites) != touch.site
        return race

    def _compare_within(self, touch: Touch, cell: np.ndarray, lost: np.ndarray, part: int) -> None:
        """Report races within a request: ``lost`` are the lanes whose cell a later lane wrote as well."""
        name, size = touch.kind.name, self.machine.launch.threads
        winner = self.last[name][cell[lost]] & THREAD
        if name == WRITE:
            if self.shared and self.races.replicas:
                return
            self.races.values_mattered = True
            bits = self._bits(touch, part)
            race = bits[lost] != bits[np.searchsorted(touch.thread, winner)]
        else:
            race = touch.thread[lost] // size != winner // size
        if race.any():
            i, rival = int(lost[race][0]), int(winner[race][0])
            self.races.report(self.machine, touch, i, rival, (name, touch.site), int(np.count_nonzero(race)))

    def _record(self, touch: Touch, cells: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Record a request in shadow memory. Returns, for each part of the access, the lanes whose cell a
        later lane of the request accesses as well.
        """
        name = touch.kind.name
        if name not in self.last:
            count = self.region.size // self.unit + 1
            self.last[name], self.other[name] = np.zeros((2, count), np.int64)
        last, other = self.last[name], self.other[name]
        self.site_at[touch.time] = touch.site
        token = touch.time << THREAD_BITS | touch.thread
        doubles = []
        for cell in cells:
            before, second = last[cell], other[cell]
            last[cell] = token
            kept = last[cell]
            lost = np.flatnonzero(kept != token)
            doubles.append(lost)
            if not (lost.size or before.any() or second.any()):
                continue
            near, far = self._distance(before, kept), self._distance(second, kept)
            furthest = np.where(far > near, second, np.where(near > 0, before, 0))
            other[cell] = furthest
            if lost.size:
                mine = self._distance(token[lost], kept[lost]) > np.maximum(near, far)[lost]
                lost = lost[mine][::-1]  # the first lane is the furthest from the last
                other[cell[lost]] = token[lost]
        return doubles

    def _distance(self, token: np.ndarray, later: np.ndarray) -> np.ndarray:
        """How far the threads of two accesses are apart: 1 in one warp, 2 in one block, 3 in two blocks; 0 if
        ``token`` is empty or ordered before ``later``.
        """
        launch, size = self.machine.launch, self.machine.launch.threads
        rival, thread = token & THREAD, later & THREAD
        out = 1 + (thread // size != rival // size).astype(np.int8)
        out += warp_of(thread, size) != warp_of(rival, size)
        done = (token == 0) | self.races.clocks.ordered(launch, thread, rival, token >> THREAD_BITS)
        return np.where(done, 0, out)

    def _value(self, touch: Touch, part: int) -> tuple[int, int]:
        """(index in ``touch.values``, bytes of that value) of the value that a part of the request writes."""
        count, parts = len(touch.values), max(1, touch.width // self.unit)
        return part * count // parts, touch.width // count

    def _bits(self, touch: Touch, part: int) -> np.ndarray:
        """The bits that each lane writes."""
        number, width = self._value(touch, part)
        return np.broadcast_to(touch.values[number].view(f"u{width}"), touch.lanes.shape)

    def _changes(self, touch: Touch, part: int) -> np.ndarray:
        """Whether each lane's value differs from the one in memory."""
        number, width = self._value(touch, part)
        return self._bits(touch, part) != self.region.view(f"u{width}")[touch.at // width + number]


def _refuse(machine, touch: Touch, lane: int, rival: int, there: tuple[str, int], count: int) -> None:
    """Raise SharedRace, with the arguments of ``report``; ``rival`` is -1 for several threads."""
    program, (did, site), instr = machine.program, there, machine.program.sites[touch.site]
    here, before = program.line_of_site(touch.site), program.line_of_site(site)
    byte = int(touch.at[lane]) % machine.shared_stride
    place = program.shared_place(byte, touch.width)
    thread, barrier, size = int(touch.thread[lane]), barrier_at(here), machine.launch.threads
    owner = int(touch.at[lane]) // machine.shared_stride
    if owner != machine.block_of_lane[touch.lanes[lane]]:
        place += f" of block {machine.block_name(owner)}"
    if rival >= 0 and rival // size != thread // size:
        barrier = "cluster.sync()"
    does, done = verb(instr, touch.kind.name), verb(program.sites[site], did, several=rival < 0)
    acts = (machine.act_of(thread, instr, does, place),)
    if rival >= 0:
        acts = (machine.act_of(rival, program.sites[site], done, place), *acts)
    hint = f"put {barrier} after the writes and before other threads read, and again before "
    hint += "the next writes; atomics are writes too" if " " in does + done else "the next writes"
    if site == touch.site and does == "writes":
        hint = f"let one of these threads write, or put {barrier} between them if they take turns"
    who = "several threads" if rival < 0 else machine.name_of(rival)
    raise program.error(
        SharedRace,
        touch.site,
        f"{machine.name_of(thread)} {does} {place} ({here}) that {who} {done} ({before}), "
        f"with no barrier between them; accesses that clash: {count:,}",
        hint,
        acts,
    )


def _same(known: np.ndarray, new: np.ndarray) -> bool:
    return known is new or (known.size == new.size and bool((known == new).all()))


def barrier_at(where: str) -> str:
    """The name of the block's barrier in the language of a source line, such as "kernel.cu:7" or "cell:7"."""
    return "__syncthreads()" if ".cu:" in where else "cuda.syncthreads()"


def cell_size(program, widest: int = 4) -> int:
    """Bytes of a cell of shadow memory: the program's narrowest access, but at most ``widest``."""
    return min(widest, program.narrowest)


def _written_regions(machine) -> set[int] | None:
    """Bases of the regions that the program, with this launch's arguments, can reach with stores or atomics;
    None for all.
    """
    bases, written = set(), machine.program.written_through
    for origins in [()] if written is None else written:
        found = [region for origin in origins if (region := _region_of(machine, *origin)) is not None]
        if not found and not _is_own_memory(machine, origins):
            return None
        bases |= {region.base for region in found}
    return bases


def _region_of(machine, name: str, offset: int):
    """The region of a variable, or of a pointer among the parameters; None if it is not global memory."""
    region = machine.program.globals.get(name)
    if region is None and name in machine.launch.params:
        value = machine.launch.params[name][offset : offset + 8]
        return machine.space.find(int.from_bytes(bytes(value), "little")) if len(value) == 8 else None
    return region


def _is_own_memory(machine, origins) -> bool:
    """Whether an address comes from a variable in shared or local memory."""
    known = machine.program.globals.keys() | machine.launch.params.keys()
    return any(name not in known for name, _ in origins)
