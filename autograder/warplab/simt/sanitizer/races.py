"""Shared-memory races: two threads of a block touch a word between two barriers, and one of them writes.

Accesses are logged as they happen and compared when a barrier ends the interval. An interval of reads only, or none,
needs no comparison, which is why correct tiled kernels pay almost nothing.
"""

from __future__ import annotations

import numpy as np

from ..errors import SharedRace

MAX_READS = 4096


class RaceDetector:
    """Observer that raises SharedRace, naming both source lines, both threads and the word."""

    def __init__(self):
        self._start()
        self._warp_barriers = False

    def _start(self):
        self.reads: dict[tuple, tuple] = {}
        self.writes: list[tuple] = []

    def executed(self, machine, group, block): ...

    def branched(self, machine, group, block, guard, uniform): ...

    def warp_barrier(self, machine, group):
        self._warp_barriers = True

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "shared" or what == "atomic":
            return  # atomics do not race with each other
        if what == "write":
            self.writes.append((site, access, offset, width, group.lanes, values))
        elif len(self.reads) < MAX_READS:
            self.reads[(id(access), offset)] = (site, access, offset, width, group.lanes)

    def barrier(self, machine):
        if self.writes:
            self._compare(machine)
        self._start()

    def done(self, machine):
        self.barrier(machine)
        self._warp_barriers = False

    def _compare(self, machine):
        unit = min([4, *(w[3] for w in self.writes), *(r[3] for r in self.reads.values())])
        cells = machine.shared.size // unit
        writer = np.full(cells, -1, np.int64)
        writer_site = np.zeros(cells, np.int64)
        for site, access, offset, width, lanes, values in self.writes:
            for part in range(max(1, width // unit)):
                cell = np.broadcast_to((access.offset + offset) // unit + part, lanes.shape)
                self._clash(machine, cell, lanes, writer, writer_site, site, "write", values)
                writer[cell] = lanes
                writer_site[cell] = site
                lost = np.flatnonzero(writer[cell] != lanes)
                if lost.size and not _same(values, lost):
                    self._clash(machine, cell, lanes, writer, writer_site, site, "write", values)
        for site, access, offset, width, lanes in self.reads.values():
            for part in range(max(1, width // unit)):
                cell = np.broadcast_to((access.offset + offset) // unit + part, lanes.shape)
                self._clash(machine, cell, lanes, writer, writer_site, site, "read", None)

    def _clash(self, machine, cell, lanes, writer, writer_site, site, what, values):
        other = writer[cell]
        bad = (other >= 0) & (other != lanes)
        if self._warp_barriers:  # lanes of one warp may order themselves with syncwarp
            bad &= machine.warp_of_lane[np.maximum(other, 0)] != machine.warp_of_lane[lanes]
        if what == "write" and bad.any() and _same(values, np.flatnonzero(bad)):
            return  # every lane writes one and the same value: benign
        if not bad.any():
            return
        i = int(np.flatnonzero(bad)[0])
        lane, rival = int(lanes[i]), int(other[i])
        program = machine.program
        here, there = program.line_of_site(site), program.line_of_site(int(writer_site[cell[i]]))
        raise SharedRace(
            f"{machine.thread_name(lane)} {'reads' if what == 'read' else 'writes'} a shared word ({here}) that {machine.thread_name(rival)} "
            f"writes ({there}), with no barrier between them; {int(bad.sum())} accesses clash",
            kernel=program.name,
            where=here,
            hint="put cuda.syncthreads() after the writes and before other threads read, and again before the next writes",
        )


def _same(values, lanes) -> bool:
    return values is not None and all(v.size == 1 or (v[lanes] == v[lanes[0]]).all() for v in values)
