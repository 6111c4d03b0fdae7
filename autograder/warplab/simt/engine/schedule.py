"""The scheduler: which group of lanes runs next, and which wait.

The group at the lowest program counter runs first, so that lanes reconverge after a branch. Three rules have
priority: before an exchange of a whole warp, the warp's other lanes run as far as they can; a group that
polls memory without success yields to the others; a group at a barrier goes on when all lanes that the
barrier waits for have arrived (``barriers``).
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.absent_lanes import WARP_WIDE
from warplab.simt.engine.barriers import release, release_early, release_warps, report_met, warp_deadlock
from warplab.simt.engine.groups import Group
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.warp_exchanges import is_full
from warplab.simt.ptx.blocks import BasicBlock, registers_written
from warplab.simt.ptx.parser import Reg

PATIENCE = 32  # polls in a row without a lane leaving the loop, after which other lanes get a turn
BOOST = 256  # length of that turn, in basic blocks


def warps_needed(blocks: list[BasicBlock]) -> list[int]:
    """How many whole warps each basic block needs: 4 if it has a ``wgmma``, 1 if it has a warp-wide exchange
    whose member mask is always all ones, else 0.
    """
    masks = [[i.operands[-1] for i in block.instrs if i.opcode in WARP_WIDE] for block in blocks]
    instrs = [i for block in blocks for i in block.instrs] if any(masks) else []
    others = {name for i in instrs if not _is_all(i) for name in registers_written(i, INSTRUCTIONS)}
    whole = {i.operands[0].name for i in instrs if _is_all(i)} - others
    needs = [any(m.name in whole if isinstance(m, Reg) else is_full(m) for m in found) for found in masks]
    return [4 if any(i.opcode == "wgmma" for i in b.instrs) else int(n) for b, n in zip(blocks, needs)]


def _is_all(instr) -> bool:
    return instr.opcode == "mov" and isinstance(instr.operands[0], Reg) and is_full(instr.operands[1])


class Schedule:
    """The schedule of one run through a kernel, or through a recursive function of it."""

    def __init__(self, machine, first: int, start: Group):
        self.machine, self.whole = machine, machine.program.warps_needed
        self.ready: dict[int, list[Group]] = {first: [start]}
        self.started = self.alive = start.size  # lanes
        self.done: list[Group] = []  # groups that have left a recursive function, with their registers
        self.waiting: list[tuple[int, Group]] = []  # at barriers of a block or of the grid
        self.gathering: list[tuple[int, Group]] = []  # at warp barriers
        self.polls = self.turn = self.boost = 0
        self.patience = PATIENCE

    def __bool__(self) -> bool:
        return bool(self.ready or self.waiting or self.gathering)

    @property
    def standing(self) -> list[tuple[int, Group]]:
        """The groups that wait at barriers, each with the index of the basic block that ends there."""
        return [*self.waiting, *self.gathering]

    def put(self, index: int, group: Group) -> None:
        """The group can run, from block ``index`` on."""
        self.ready.setdefault(index, []).append(group)

    def wait(self, index: int, group: Group, vote: np.ndarray | None) -> None:
        """The group waits at the barrier of a block, cluster or grid that ends basic block ``index``."""
        if vote is not None:
            group.regs["$vote"] = vote
        self.waiting.append((index, group))

    def leave(self, group: Group) -> None:
        """The group has reached the end of the kernel or function."""
        self.alive -= group.size
        if self.machine.depth:
            self.done.append(group)

    def gather(self, index: int, group: Group, mask: np.ndarray) -> None:
        """The group waits at a ``bar.warp.sync``: some lanes of its warps are absent, or masks differ."""
        group.regs["$mask"] = mask
        self.gathering.append((index, group))
        self._release_warps()

    def next(self) -> tuple[int, list[Group]]:
        """(index of the basic block to run next, groups there). Raises BarrierDivergence in a deadlock."""
        while not self.ready:
            if not self.gathering:
                passing, self.waiting = release(self.machine, self.waiting)
                report_met(self.machine, passing, all_of_them=not self.waiting)
                self._pass(passing)
            elif not (self._release_warps() or self._release_early()):
                warp_deadlock(self.machine, self.gathering, self.waiting)
        if self.polls >= self.patience and (self.waiting or self.gathering or len(self.ready) > 1):
            # the lowest lanes spin: the other places get a turn, one after the other
            self._release_warps()
            self._release_early()
            self.polls, self.turn, self.boost, self.patience = 0, self.turn + 1, BOOST, 4
        index = sorted(self.ready)[self.turn % len(self.ready)] if self.boost else min(self.ready)
        if not self.boost or self.whole[index] == 4:
            index = self._in_place_of(index)
        return index, self.ready.pop(index)

    def step(self, block: BasicBlock) -> None:
        """A basic block runs: count its polls, and the steps of a turn."""
        self.polls += block.polls
        self.boost = max(0, self.boost - 1)

    def yield_turn(self) -> None:
        """The running group polled without success: the others run first."""
        self.polls, self.boost = self.patience, 0

    def runs_on(self, index: int, group: Group) -> bool:
        """Whether the group goes on with basic block ``index`` at once, as no other group comes first."""
        whole = self.whole[index]
        if self.boost:
            return whole != 4 or not group.lacks_warps
        spins = self.polls >= self.patience
        if not self.ready:
            return not (spins and (self.waiting or self.gathering))
        comes_early = whole and (group.absent is not None if whole == 1 else group.lacks_warps)
        return not (spins or comes_early or min(self.ready) <= index)

    def _in_place_of(self, lowest: int) -> int:
        """The basic block to run instead of ``lowest``. It is ``lowest`` itself, unless that has an
        instruction of whole warps: then one with other lanes of these warps, which may still reach it.
        """
        if len(self.ready) == 1 or not self.whole[lowest]:
            return lowest
        of_one = self.whole[lowest] == 1
        warps = {
            i: {w for g in groups for w in np.unique(g.warp if of_one else g.four_warps).tolist()}
            for i, groups in self.ready.items()
        }
        for index in (lowest, *sorted(self.ready)):
            others = (warps[other] for other in self.ready if other != index)
            if not self.whole[index] or warps[index].isdisjoint(set().union(*others)):
                return index
        return lowest

    def _release_warps(self) -> bool:
        """Release groups whose warp barriers are complete; True if there are any."""
        if not self.gathering:
            return False
        passing, self.gathering = release_warps(self.machine, self.gathering, self._running(self.waiting))
        return self._pass(passing)

    def _release_early(self) -> bool:
        """Release groups at barriers that do not wait for a running group; True if there are any."""
        if not self.waiting:
            return False
        passing, self.waiting = release_early(self.machine, self.waiting, self._running(self.gathering))
        return self._pass(passing)

    def _running(self, others: list[tuple[int, Group]]) -> list[Group]:
        """The groups that can run, and the waiting groups in ``others``."""
        return [group for groups in self.ready.values() for group in groups] + [group for _, group in others]

    def _pass(self, passing: list[tuple[int, Group]]) -> bool:
        for index, group in passing:
            self.put(index + 1, group)
        return bool(passing)
