"""Shared-memory races: two threads of a block touch a word between two barriers, one of them writes, and
nothing puts one before the other.

What clashes and what orders is said in ``ordering``. Accesses are logged as they happen and compared when a
barrier ends the interval, or when the log grows long. An interval in which nothing can clash, of reads or of
atomics only, needs no comparison, which is why correct tiled kernels pay almost nothing. Within an interval
all that a cell's summary must hold of those who touched it is one thread, or that they were several of one
warp since its last ``syncwarp``, or of several warps: whatever comes after all of them takes their place.
Writing one and the same value twice is benign. Volatile accesses count as strong only in a kernel that has a
fence, and there for other warps: else they are how warps were once programmed without ``syncwarp``, which is
a race. After a barrier of part of a block, and a ``syncwarp`` of part of a warp, ``engine.knowledge`` says
who has met whom.

With ``replicas`` threads may hold one element of a tensor together, as Triton's do, and all of them write it
with one instruction. What each computed differs in its last bit where the compiler fused a product with one
side of a sum (``fma(p, q, shuffled)``): any of them will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplab.simt.engine.knowledge import Knowledge, Known
from warplab.simt.errors import SharedRace
from warplab.simt.observer import Observer
from warplab.simt.ptx.parser import Imm
from warplab.simt.sanitizer.ordering import (
    CLASHES,
    NOBODY,
    READ,
    SEVERAL,
    STRONG_WRITE,
    VOLATILE_READ,
    VOLATILE_WRITE,
    WRITE,
    ByThread,
    Kind,
    kind_of,
    verb,
)

VOLATILES = VOLATILE_READ, VOLATILE_WRITE
ALL_LANES = 0xFFFFFFFF
LONGEST_LOG = 512  # requests; each holds arrays of one element a lane


@dataclass
class Request:
    """One logged request: who touched which bytes and how; ``values`` of a plain write, None of others.

    ``fence_at`` and ``meeting_at`` are the moments of each warp's last fence and last strong access behind a
    fence as they were then, None before the first fence.
    """

    site: int
    kind: Kind
    access: object
    offset: int
    width: int
    lanes: np.ndarray
    warp: np.ndarray
    epoch: np.ndarray
    time: int
    values: tuple | None
    fence_at: np.ndarray | None
    meeting_at: np.ndarray | None
    known: Known | None  # where mbarriers are in use
    thread: np.ndarray  # of the chunk's lanes, within their blocks

    def last_fence(self, warp: np.ndarray) -> np.ndarray:
        """When each of the warps fenced last; of SEVERAL, any of them; 0 before the first time."""
        return np.where(warp == SEVERAL, self.fence_at.max(), self.fence_at[np.maximum(warp, 0)])


class RaceDetector(Observer):
    """Observer that raises SharedRace, naming both source lines, both threads and the word."""

    def __init__(self, replicas: bool = False):
        self.replicas = replicas
        self.kinds: dict[tuple[int, str], Kind] = {}
        self.values_mattered = False  # what two threads wrote to one cell had to be equal
        self.done_with_chunk()

    def done_with_chunk(self):
        self.now = 0
        self.fence_at: np.ndarray | None = None  # by warp
        self.meeting_at: np.ndarray | None = None
        self.knowledge: Knowledge | None = None
        self.own: Knowledge | None = None  # where there are no mbarriers
        self._start()

    def _start(self):
        self.log: list[Request] = []
        self.seen: set[tuple] = set()  # of the log, what a loop does again and again and is no plain write
        self.did: set[str] = set()
        self.tables: SharedTables | None = None
        self.epoch: np.ndarray | None = None  # syncwarps that each warp has passed since the barrier

    def warp_barrier(self, machine, group):
        if self.epoch is None:
            self.epoch = np.zeros(machine.warps, np.int64)
        self.epoch[np.unique(group.warp)] += 1
        self.seen.clear()
        if self.knowledge is not None and self.knowledge is self.own:
            self.knowledge.join(group.lanes, group.warp)

    def fence(self, machine, group, wide):
        if self.fence_at is None:
            self.fence_at = self.meeting_at = np.zeros(machine.warps, np.int64)
        self.now += 1
        self.fence_at = self._marked(self.fence_at, group)

    def published(self, machine, group, knowledge):
        """An arrival at an mbarrier; where fences are in use it is one too, and a wait is a strong access."""
        if self.knowledge is not knowledge and self.knowledge is not None:
            self._end(machine)
            self._start()  # other moments begin
        self.knowledge = knowledge
        self.seen.clear()
        if self.fence_at is not None:
            self.fence(machine, group, wide=False)

    def taken_over(self, machine, group, knowledge):
        self.seen.clear()
        if self.fence_at is not None:
            self.now += 1
            self.meeting_at = self._marked(self.meeting_at, group)

    def _marked(self, moments, group) -> np.ndarray:
        """A copy, as the log keeps the moments of before, in which the group's warps are at this one."""
        self.seen.clear()
        moments = moments.copy()
        moments[group.warp] = self.now
        return moments

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "shared" and self.fence_at is None:
            return
        kind = self.kinds.get((site, what)) or self._kind(machine, site, what)
        if kind.releases:
            self.fence(machine, group, kind.releases == "wide")
        self.now += 1
        if kind.strong and self.fence_at is not None:
            self.meeting_at = self._marked(self.meeting_at, group)
        if space != "shared":
            return
        if kind.name != WRITE:
            key = (id(access), offset, width, site if kind.strong else READ)
            if key in self.seen:
                return
            self.seen.add(key)
            values = None
        self.did.add(kind.name)
        epoch = np.zeros(1, np.int64) if self.epoch is None else self.epoch[group.warp]
        self.log.append(
            Request(
                site,
                kind,
                access,
                offset,
                width,
                group.lanes,
                group.warp,
                epoch,
                self.now,
                values,
                self.fence_at,
                self.meeting_at,
                None if self.knowledge is None else self.knowledge.of(group.lanes),
                machine.thread_of_lane,
            )
        )
        if len(self.log) >= LONGEST_LOG:
            if _meets_in_part(machine.program):  # once the log is compared it is too late
                self._remember_threads(machine)
            self._compare(machine)

    def _kind(self, machine, site: int, what: str) -> Kind:
        program = machine.program
        kind = kind_of(program.sites[site], what, program.fences, program.guesses, several_blocks=False)
        self.kinds[site, what] = kind
        return kind

    def barrier(self, machine, block):
        self._end(machine)
        self._start()

    def met(self, machine, lanes, together):
        self.seen.clear()
        self._remember_threads(machine)
        if self.knowledge is self.own:
            self.knowledge.join(lanes, together)

    def _remember_threads(self, machine):
        if self.knowledge is None:
            self.knowledge = self.own = self._looking_back(machine)

    def _looking_back(self, machine) -> Knowledge:
        """What threads know by the syncwarps since the barrier. The logged requests are told what was known
        at their time: else it would be forgotten who they were that touched a cell before this barrier.
        """
        knowledge, passed = Knowledge(machine), np.zeros(machine.warps, np.int64)

        def pass_syncwarps(warp, epoch):
            late = np.unique(warp[passed[warp] < epoch])
            if late.size:
                lanes = np.flatnonzero(np.isin(machine.warp_of_lane, late))
                knowledge.join(lanes, machine.warp_of_lane[lanes])
                passed[warp] = epoch

        for request in self.log:
            pass_syncwarps(request.warp, request.epoch)
            request.known = knowledge.of(request.lanes)
        if self.epoch is not None:
            pass_syncwarps(np.arange(machine.warps), self.epoch)
        return knowledge

    def done(self, machine):
        self._end(machine)
        self.done_with_chunk()

    def _end(self, machine):
        if any(other in self.did for name in self.did for other in CLASHES[name]):
            self._compare(machine)

    def _compare(self, machine):
        self.tables = self.tables or SharedTables(machine, self.kinds, self.replicas)
        for request in self.log:
            self.tables.enter(request)
        self.values_mattered |= self.tables.values_mattered
        self.log, self.seen = [], set()


class Touched:
    """For each cell of shared memory who touched it in one way, in summary: the lane and its warp, or
    SEVERAL; the warp's syncwarp epoch, the moment and the instruction of the last.
    """

    def __init__(self, cells: int, strong: bool):
        self.lane = np.full(cells, NOBODY, np.int64)
        self.warp = np.full(cells, NOBODY, np.int64)
        self.epoch = np.zeros(cells, np.int64)
        self.time = np.zeros(cells, np.int64)
        self.site = np.zeros(cells, np.int32)
        self.empty, self.strong = True, strong
        self.by_thread: ByThread | None = None  # where mbarriers are in use

    def ordered(self, cell, request: Request) -> np.ndarray:
        """Whether all who touched the cell did so before the request's lane does; True if nobody did."""
        if self.empty:
            return np.ones(cell.shape, bool)
        warp = self.warp[cell]
        out = (self.lane[cell] == request.lanes) | (self.epoch[cell] < request.epoch)
        out &= warp == request.warp
        out |= warp == NOBODY
        if request.fence_at is not None and not out.all():
            out |= self._released(cell, warp, request)
        if request.known is not None and not out.all():
            if self.by_thread is None:  # the first such request: whoever came before has the moment 0
                self.by_thread = ByThread(self.lane.size, request.known.threads)
            out |= self.by_thread.known(self.lane[cell], cell, request)
        return out

    def _released(self, cell, warp, request: Request) -> np.ndarray:
        """By a fence, and by a strong access of the request's warp; the last write of a release may itself
        be what the cell was touched by.
        """
        time = self.time[cell]
        fenced = request.last_fence(warp) > (0 if self.strong else time)
        return fenced & (request.meeting_at[request.warp] >= time)

    def add(self, cell, request: Request, ordered: np.ndarray) -> None:
        """Put the request's lanes in the place of who is ``ordered`` before them, and with the others."""
        joins = None if self.empty or ordered.all() else ~ordered
        before = None if request.known is None else self.lane[cell]
        foreign = None if joins is None else joins & (self.warp[cell] != request.warp)
        self.empty = False
        self.lane[cell], self.warp[cell] = request.lanes, request.warp
        self.epoch[cell], self.site[cell] = request.epoch, request.site
        self.time[cell] = request.time
        lost = self.lane[cell] != request.lanes  # lanes of one request that touch one cell
        if lost.any():
            others = lost & (self.warp[cell] != request.warp)
            self.lane[cell[lost]] = SEVERAL
            self.warp[cell[others]] = SEVERAL
        if joins is not None:
            self.lane[cell[joins]] = SEVERAL
            self.warp[cell[foreign]] = SEVERAL
        if request.known is not None:
            if self.by_thread is None:
                self.by_thread = ByThread(self.lane.size, request.known.threads)
            self.by_thread.add(before, self.lane[cell] == SEVERAL, cell, request, ordered)


class SharedTables:
    """Who touched each cell since the last barrier, by kind of access.

    A cell is a word, or less if the kernel has narrower accesses.
    """

    def __init__(self, machine, kinds: dict[tuple[int, str], Kind], replicas: bool):
        self.machine, self.replicas = machine, replicas
        self.unit = cell_size(machine.program)
        self.cells = machine.shared.size // self.unit
        self.touched: dict[str, Touched] = {}
        self.values_mattered = False
        self.value = np.zeros(self.cells, np.uint64)
        self.by_hand = np.zeros(len(machine.program.sites), bool)
        self.by_hand[[site for (site, _), kind in kinds.items() if kind.by_hand]] = True

    def enter(self, request: Request) -> None:
        """Check one request against all before it, then record it."""
        first = np.broadcast_to((request.access.offset + request.offset) // self.unit, request.lanes.shape)
        parts = max(1, request.width // self.unit)
        if request.fence_at is not None and request.kind.name == WRITE and self._opens(request, first):
            request.kind, request.values = Kind(STRONG_WRITE), None
        name = request.kind.name
        if name not in self.touched:
            self.touched[name] = Touched(self.cells, request.kind.strong)
        mine = self.touched[name]
        for part in range(parts):
            cell = first + part
            bits = None
            if request.values is not None:
                bits = self._bits(request, part, parts, cell.shape)
            ordered = None
            for other in CLASHES[name]:
                others = self.touched.get(other)
                if others is None or others.empty:
                    continue
                before = others.ordered(cell, request)
                if others is mine:
                    ordered = before
                clash = ~before
                if clash.any() and other == WRITE and name == WRITE:
                    self.values_mattered = True
                    clash &= self.value[cell] != bits
                    if self.replicas:
                        clash &= others.site[cell] != request.site
                if name in VOLATILES and other in VOLATILES:
                    clash &= others.warp[cell] == request.warp
                if clash.any() and request.fence_at is not None and request.kind.by_hand and other == WRITE:
                    clash &= request.last_fence(others.warp[cell]) == 0
                if clash.any():
                    i = int(np.flatnonzero(clash)[0])
                    rival, there = int(others.lane[cell[i]]), int(others.site[cell[i]])
                    self._refuse(request, i, int(cell[i]), rival, there, other, int(clash.sum()))
            mine.add(cell, request, mine.ordered(cell, request) if ordered is None else ordered)
            if bits is not None:
                self.values_mattered |= bool((mine.lane[cell] == SEVERAL).any())
                self._record_value(request, cell, bits)

    def _bits(self, request: Request, part: int, parts: int, shape) -> np.ndarray:
        """What the lanes write into one part of their cells, as uint64."""
        count = len(request.values)
        values = request.values[part * count // parts]
        raw = values.view(f"u{values.dtype.itemsize}") if values.dtype.kind != "b" else values
        raw = raw.astype(np.uint64)
        if parts > count:  # several cells a value
            raw = raw >> np.uint64(8 * self.unit * (part % (parts // count))) & np.uint64(
                (1 << 8 * self.unit) - 1
            )
        return np.broadcast_to(raw, shape)

    def _record_value(self, request: Request, cell, bits) -> None:
        """The value that is there now; lanes of one request that write one cell must agree on it."""
        self.value[cell] = bits
        lost = np.flatnonzero(self.value[cell] != bits)
        if lost.size and not self.replicas:
            i = int(lost[0])
            won = np.flatnonzero((cell == cell[i]) & (bits == self.value[cell[i]]))[0]
            rival = int(request.lanes[won])
            self._refuse(request, i, int(cell[i]), rival, request.site, WRITE, int(lost.size))

    def _opens(self, request: Request, cell) -> bool:
        """Whether a plain store behind a fence answers those who look at its cells for a flag or a lock."""
        if not (request.last_fence(request.warp) > 0).all():
            return False
        looks = np.zeros(cell.shape, bool)
        for strong in (t for t in self.touched.values() if t.strong):
            looks |= (strong.warp[cell] != NOBODY) & self.by_hand[strong.site[cell]]
        return bool(looks.all())

    def _refuse(self, request: Request, i: int, cell: int, rival: int, there: int, did: str, count: int):
        program, thread = self.machine.program, self.machine.thread_name
        byte = cell * self.unit % self.machine.shared_stride
        here, before = program.line_of_site(request.site), program.line_of_site(there)
        does = verb(program.sites[request.site], request.kind.name)
        done = verb(program.sites[there], did, several=rival < 0)
        place = program.shared_place(byte, request.width)
        acts = (self.machine.act(int(request.lanes[i]), program.sites[request.site], does, place),)
        if rival >= 0:
            acts = (self.machine.act(rival, program.sites[there], done, place), *acts)
        hint = f"put {barrier_at(here)} after the writes and before other threads read, and again before "
        hint += "the next writes; atomics are writes too" if " " in does + done else "the next writes"
        if there == request.site and does == "writes":
            hint = (
                f"let one of these threads write, or put {barrier_at(here)} between them if they take turns"
            )
        raise SharedRace(
            f"{thread(int(request.lanes[i]))} {does} {place} ({here}) "
            f"that {'several threads' if rival < 0 else thread(rival)} {done} ({before}), "
            f"with no barrier between them; accesses that clash: {count:,}",
            kernel=program.name,
            where=here,
            hint=hint,
            acts=acts,
        )


def _meets_in_part(program) -> bool:
    """Whether it has barriers of some warps of a block or, as far as can be seen, of some lanes of a warp."""
    for block in program.blocks:
        if block.end == "barrier":
            if len(block.branch.operands) == (4 if "red" in block.branch.mods else 2):
                return True
        elif block.end == "syncwarp":
            mask = block.branch.operands[0]
            if not isinstance(mask, Imm) or int(mask.value) & ALL_LANES != ALL_LANES:
                return True
    return False


def barrier_at(where: str) -> str:
    """What the barrier of a block is called in the language of a line, "kernel.cu:7" or "cell:7"."""
    return "__syncthreads()" if ".cu:" in where else "cuda.syncthreads()"


def cell_size(program, widest: int = 4) -> int:
    """Bytes of the cells that memory is watched in: ``widest``, or the narrowest access of the program."""
    return min(widest, program.narrowest)
