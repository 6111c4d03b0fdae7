"""Shared-memory races: two threads of a block touch a word between two barriers, and one of them writes.

Accesses are logged as they happen and compared when a barrier ends the interval, or when the log grows long.
An interval of reads only needs no comparison, which is why correct tiled kernels pay almost nothing.
``syncwarp`` orders the lanes of its warp; writing one and the same value twice is benign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplab.simt.errors import SharedRace
from warplab.simt.observer import Observer
from warplab.simt.ptx.ptx_types import TYPES

LONGEST_LOG = 512  # requests; each holds arrays of one element a lane
NOBODY, SEVERAL = -1, -2


@dataclass
class Request:
    """One logged request: who touched which bytes; ``values`` of a write, None of a read."""

    site: int
    access: object
    offset: int
    width: int
    lanes: np.ndarray
    warp: np.ndarray
    epoch: np.ndarray
    values: tuple | None


class RaceDetector(Observer):
    """Observer that raises SharedRace, naming both source lines, both threads and the word."""

    def __init__(self):
        self._start()

    def _start(self):
        self.log: list[Request] = []
        self.seen: set[tuple[int, int]] = (
            set()
        )  # reads that are in the log: a loop reads the same words again
        self.wrote = False
        self.tables: SharedTables | None = None
        self.epoch: np.ndarray | None = None  # syncwarps that each warp has passed since the barrier

    def warp_barrier(self, machine, group):
        if self.epoch is None:
            self.epoch = np.zeros(machine.warps, np.int64)
        self.epoch[np.unique(group.warp)] += 1
        self.seen.clear()

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "shared" or what == "atomic":
            return  # atomics do not race with each other
        if what == "read":
            key = (id(access), offset)
            if key in self.seen:
                return
            self.seen.add(key)
        else:
            self.wrote = True
        epoch = np.zeros(1, np.int64) if self.epoch is None else self.epoch[group.warp]
        self.log.append(Request(site, access, offset, width, group.lanes, group.warp, epoch, values))
        if len(self.log) >= LONGEST_LOG:
            self._compare(machine)

    def barrier(self, machine, block):
        self.done(machine)

    def done(self, machine):
        if self.wrote:
            self._compare(machine)
        self._start()

    def _compare(self, machine):
        self.tables = self.tables or SharedTables(machine)
        for request in self.log:
            self.tables.enter(request)
        self.log, self.seen = [], set()


class Touched:
    """For each cell of shared memory: the last lane that touched it, its warp,
    syncwarp epoch and instruction.
    """

    def __init__(self, cells: int):
        self.lane = np.full(cells, NOBODY, np.int64)
        self.warp = np.full(cells, NOBODY, np.int64)
        self.epoch = np.zeros(cells, np.int64)
        self.site = np.zeros(cells, np.int32)
        self.empty = True

    def set(self, cell, request: Request) -> None:
        self.empty = False
        self.lane[cell], self.warp[cell] = request.lanes, request.warp
        self.epoch[cell], self.site[cell] = request.epoch, request.site

    def clashes(self, cell, request: Request) -> np.ndarray:
        """Lanes whose cell another lane touched, unless a syncwarp of their common warp stands between."""
        if self.empty:
            return np.zeros(1, bool)
        lane = self.lane[cell]
        ordered = (self.warp[cell] == request.warp) & (self.epoch[cell] < request.epoch)
        return (lane != NOBODY) & (lane != request.lanes) & ~ordered


class SharedTables:
    """Who wrote and who read each cell since the last barrier.

    A cell is a word, or less if the kernel has narrower accesses.
    """

    def __init__(self, machine):
        self.machine = machine
        self.unit = cell_size(machine.program)
        cells = machine.shared.size // self.unit
        self.written, self.read = Touched(cells), Touched(cells)
        self.value = np.zeros(cells, np.uint64)

    def enter(self, request: Request) -> None:
        """Check one request against all before it, then record it."""
        first = np.broadcast_to((request.access.offset + request.offset) // self.unit, request.lanes.shape)
        parts = max(1, request.width // self.unit)
        for part in range(parts):
            cell = first + part
            if request.values is None:
                self._refuse(
                    request, cell, self.written, self.written.clashes(cell, request), "reads", "writes"
                )
                self._record_read(cell, request)
                continue
            bits = _bits(request.values[part * len(request.values) // parts], cell.shape)
            self._refuse(request, cell, self.read, self.read.clashes(cell, request), "writes", "reads")
            clash = self.written.clashes(cell, request) & (self.value[cell] != bits)
            self._refuse(request, cell, self.written, clash, "writes", "writes")
            self.written.set(cell, request)
            self.value[cell] = bits
            lost = (self.written.lane[cell] != request.lanes) & (self.value[cell] != bits)
            self._refuse(request, cell, self.written, lost, "writes", "writes")

    def _record_read(self, cell, request) -> None:
        before, warp = self.read.lane[cell], self.read.warp[cell]
        self.read.set(cell, request)
        mixed = (self.read.lane[cell] != request.lanes) | ((before != NOBODY) & (before != request.lanes))
        self.read.lane[cell[mixed]] = SEVERAL
        foreign = (self.read.warp[cell] != request.warp) | ((warp != NOBODY) & (warp != request.warp))
        self.read.warp[cell[foreign]] = SEVERAL

    def _refuse(self, request, cell, other, bad, does, did) -> None:
        if not bad.any():
            return
        i = int(np.flatnonzero(bad)[0])
        program, thread = self.machine.program, self.machine.thread_name
        rival = int(other.lane[cell[i]])
        byte = int(cell[i]) * self.unit % self.machine.shared_stride
        here, there = program.line_of_site(request.site), program.line_of_site(int(other.site[cell[i]]))
        others = f"several threads {did[:-1]}" if rival < 0 else f"{thread(rival)} {did}"
        raise SharedRace(
            f"{thread(int(request.lanes[i]))} {does} a shared word (byte offset {byte}, {here}) "
            f"that {others} ({there}), with no barrier between them; {int(bad.sum())} accesses clash",
            kernel=program.name,
            where=here,
            hint="put cuda.syncthreads() after the writes and before other threads read, "
            "and again before the next writes",
        )


def cell_size(program, widest: int = 4) -> int:
    """Bytes of the cells that memory is watched in: ``widest``, or the narrowest access of the program."""
    return min([widest, *(TYPES[m].bytes for i in program.sites for m in i.mods[-1:] if m in TYPES)])


def _bits(values: np.ndarray, shape) -> np.ndarray:
    """The values' bit patterns as uint64, one a lane."""
    raw = values.view(f"u{values.dtype.itemsize}") if values.dtype.kind != "b" else values
    return np.broadcast_to(raw.astype(np.uint64), shape)
