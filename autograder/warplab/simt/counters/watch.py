"""Single warps under the lens: the addresses of a request at each load and store,
and which lanes were active when.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplab.simt.counters.collect import BANKS, Counters
from warplab.simt.observer import Observer

MAX_STEPS = 4096
SECTOR = 32
WORD = 4


@dataclass(frozen=True)
class WarpRequest:
    """One request of one warp: byte ``offsets`` (into the array,
    or shared memory) of the ``lanes`` that took part.
    """

    line: int
    space: str
    kind: str
    lanes: tuple[int, ...]
    offsets: tuple[int, ...]
    width: int
    label: str

    @property
    def sectors(self) -> list[int]:
        """The sectors of 32 bytes that it touches, by their number in the array."""
        return sorted(
            {s for o in self.offsets for s in range(o // SECTOR, (o + self.width - 1) // SECTOR + 1)}
        )

    @property
    def fewest_sectors(self) -> int:
        """As many as would do if the lanes' bytes stood side by side.

        No more than it takes, where lanes share some.
        """
        return min(len(self.sectors), -(-len(self.lanes) * self.width // SECTOR))

    @property
    def depths(self) -> list[int]:
        """Distinct words of 4 bytes that it wants from each of the 32 banks."""
        words = {o // WORD + i for o in self.offsets for i in range(max(1, self.width // WORD))}
        return [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]

    @property
    def cost(self) -> tuple[int, int]:
        """Sectors or, in shared memory, wavefronts: as many as it takes, and the fewest that would do."""
        if self.space == "shared":
            return max(self.depths), -(-sum(self.depths) // BANKS)
        return len(self.sectors), self.fewest_sectors


@dataclass(frozen=True)
class TraceStep:
    """A run of instructions that the warp issued with one set of lanes:
    ``active`` has a bit for each of the 32.
    """

    line: int
    active: int
    instructions: int


class FirstWarp(Observer):
    """Observer of warp 0 of the first block: ``samples`` by site, ``timeline`` of at most 4,096 steps."""

    def __init__(self):
        self.samples: dict[int, WarpRequest] = {}
        self.timeline: list[TraceStep] = []

    def executed(self, machine, group, block):
        if machine.first_block or len(self.timeline) >= MAX_STEPS or not group.size or group.warp[0] != 0:
            return
        lanes = group.column[group.warp == 0]
        active = int(np.bitwise_or.reduce(np.left_shift(1, lanes.astype(np.int64))))
        instr = block.instrs[0] if block.instrs else block.branch
        if instr is not None:
            self.timeline.append(
                TraceStep(instr.line, active, len(block.instrs) + (block.branch is not None))
            )

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if site in self.samples or space == "local" or machine.first_block or not group.size:
            return
        self.samples[site] = request_of(machine, group, 0, site, access, offset, width, space, what)


class Costliest(Counters):
    """Counters that keep, in ``samples`` by (site, space), a request of the moment when one cost most:
    a warp's mean over all warps there.

    Cost is sectors of global memory, wavefronts beyond the fewest in shared memory.
    """

    def __init__(self):
        super().__init__()
        self.samples: dict[tuple[int, str], WarpRequest] = {}
        self._most: dict[tuple[int, str], float] = {}

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        key = site, space
        before = self._cost(key)
        super().accessed(machine, group, site, access, offset, width, space, what, values)
        if space == "local" or not group.size:
            return
        mean = (self._cost(key) - before) / group.warps
        if key not in self.samples or mean > self._most[key]:
            self._most[key] = mean
            fullest = int(np.bincount(group.row).argmax())
            self.samples[key] = request_of(machine, group, fullest, site, access, offset, width, space, what)

    def _cost(self, key) -> int:
        traffic = self.traffic.get(key)
        return traffic.sectors or traffic.wavefronts - traffic.ideal if traffic else 0


def request_of(machine, group, row, site, access, offset, width, space, what) -> WarpRequest:
    """What warp number ``row`` of the group asks for."""
    mine = group.row == row
    raw = access.offset if space == "global" else access.within
    offsets = np.broadcast_to(raw + offset, mine.shape)[mine]
    label = access.region.label if space == "global" else "shared memory"
    if space == "cluster":
        space, label = "shared", "shared memory of other blocks"
    return WarpRequest(
        machine.program.sites[site].line,
        space,
        what,
        tuple(group.column[mine].tolist()),
        tuple(offsets.tolist()),
        int(width),
        label,
    )
