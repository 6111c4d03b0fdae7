"""Observers that keep single warps' requests, with their addresses, and which lanes were active when."""

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
    """One request of one warp: the byte ``offsets`` (in the array, or in shared memory) that the ``lanes``
    that took part access, ``width`` bytes each.
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
        """The numbers, in the array, of the 32-byte sectors that it touches."""
        return sorted(
            {s for o in self.offsets for s in range(o // SECTOR, (o + self.width - 1) // SECTOR + 1)}
        )

    @property
    def fewest_sectors(self) -> int:
        """The sectors that the lanes' bytes would need side by side; no more than ``sectors``, which may be
        fewer where lanes share bytes.
        """
        return min(len(self.sectors), -(-len(self.lanes) * self.width // SECTOR))

    @property
    def depths(self) -> list[int]:
        """How many distinct words of 4 bytes it needs from each of the 32 banks."""
        words = {o // WORD + i for o in self.offsets for i in range(max(1, self.width // WORD))}
        return [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]

    @property
    def cost(self) -> tuple[int, int]:
        """(actual, fewest possible) sectors, or wavefronts in shared memory."""
        if self.space == "shared":
            return max(self.depths), -(-sum(self.depths) // BANKS)
        return len(self.sectors), self.fewest_sectors


@dataclass(frozen=True)
class TraceStep:
    """A run of ``instructions`` that the warp issued with the same lanes; ``active``: a bit for each lane."""

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
    """Counters that also keep, in ``samples`` by (site, space), a request of the costliest execution of each
    memory instruction: that with the highest mean cost of a warp.

    The cost is in sectors for global memory, and in bank conflicts for shared memory.
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
    """The request of warp number ``row`` of the group."""
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
