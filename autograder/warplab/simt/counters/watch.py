"""One warp under the lens: the addresses of its first access at each load and store, and which lanes were active when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..observer import Observer

MAX_STEPS = 4096


@dataclass(frozen=True)
class Sample:
    """One request of one warp: byte ``offsets`` (into the array, or shared memory) of the ``lanes`` that took part."""

    line: int
    space: str
    kind: str
    lanes: tuple[int, ...]
    offsets: tuple[int, ...]
    width: int
    label: str


@dataclass(frozen=True)
class Step:
    """A run of instructions that the warp issued with one set of lanes: ``active`` has a bit for each of the 32."""

    line: int
    active: int
    instructions: int


class FirstWarp(Observer):
    """Observer of warp 0 of the first block: ``samples`` by site, ``timeline`` of at most 4,096 steps."""

    def __init__(self):
        self.samples: dict[int, Sample] = {}
        self.timeline: list[Step] = []

    def executed(self, machine, group, block):
        if machine.first_block or len(self.timeline) >= MAX_STEPS or not group.size or group.warp[0] != 0:
            return
        lanes = group.column[group.warp == 0]
        active = int(np.bitwise_or.reduce(np.left_shift(1, lanes.astype(np.int64))))
        instr = block.instrs[0] if block.instrs else block.branch
        if instr is not None:
            self.timeline.append(Step(instr.line, active, len(block.instrs) + (block.branch is not None)))

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if site in self.samples or space == "local" or machine.first_block or not group.size:
            return
        mine = group.warp == group.warp[0]
        raw = access.offset if space == "global" else access.source.view(np.int64)
        offsets = np.broadcast_to(raw + offset, group.warp.shape)[mine]
        label = access.region.label if space == "global" else "shared memory"
        self.samples[site] = Sample(
            machine.program.sites[site].line, space, what, tuple(group.column[mine].tolist()), tuple(offsets.tolist()), width, label
        )
