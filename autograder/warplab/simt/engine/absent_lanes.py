"""Warns of warp-wide exchanges (vote, match, reduction, shuffle) whose member mask does not fit the lanes
that execute them.

In PTX a lane waits at an exchange until all lanes of its mask that have not exited execute it too; in CUDA
C++ the result is undefined if one of them does not. If a mask always names the whole warp, the engine runs
the warp's other lanes first, as far as they can (``schedule``). Then it computes the exchange for the lanes
that are there. If an absent lane later has an effect, it did not take part: a warning is noted in
``machine.sync_warnings``. PTX also leaves undefined an exchange or ``bar.warp.sync`` executed by a lane that
its own mask does not name, of which the engine warns too.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.wrapped import plain
from warplab.simt.ptx.blocks import BasicBlock
from warplab.simt.ptx.effects import effects_of

WARP_WIDE = {
    "shfl": "shuffle",
    "vote": "vote",
    "match": "match",
    "redux": "reduction",
    "elect": "election",
}


def is_quiet(block: BasicBlock) -> bool:
    """Whether the block has no effect that other lanes can see."""
    return block.end in ("exit", "jump", "fall", "branch") and all(map(_is_quiet, block.instrs))


def _is_quiet(instr) -> bool:
    row = effects_of(instr, INSTRUCTIONS)
    loads = row.memory == "load" and "param" in instr.mods
    return (row.memory == "none" or loads) and row.writes(instr) and instr.opcode not in WARP_WIDE


class AbsentLanes:
    """The lanes of one chunk that the mask of an exchange names and that have not executed it."""

    def __init__(self, machine):
        self.machine = machine
        # by site: for each absent lane, a lane that named it (-1 for lanes not absent), and that lane's mask
        self.of_site: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.changes = self.looked = 0

    def add(self, group, mask: np.ndarray, site: int) -> None:
        """``group`` executes a warp-wide exchange whose member ``mask`` names lanes that are not in the
        group.
        """
        lanes, named = self.machine.lanes, np.broadcast_to(mask, group.lanes.shape)
        came, masks = self.of_site.get(site, (np.full(lanes, -1), np.zeros(lanes, np.uint32)))
        here, bit = np.nonzero((named & group.absent)[:, np.newaxis] >> np.arange(32, dtype=np.uint32) & 1)
        away = group.lanes[here] - group.column[here] + bit
        new = came[away] < 0
        here, away = here[new][::-1], away[new][::-1]  # the first lane that names one overwrites the others
        if away.size:
            came[away], masks[away] = group.lanes[here], named[here]
            self.changes += 1
            self.of_site[site] = came, masks

    def outside(self, group, mask: np.ndarray, site, instr) -> bool:
        """Warn and return True if a lane executes an exchange or a warp barrier that its own ``mask`` leaves
        it out of. ``site`` identifies ``instr`` among the warnings.
        """
        masks = np.broadcast_to(plain(mask), group.lanes.shape)
        named = masks >> group.column & 1
        if named.all():
            return False
        program, first = self.machine.program, int(np.argmin(named))
        what, who = WARP_WIDE.get(instr.opcode, "syncwarp"), self.machine.thread_name(group.lanes[first])
        text = (
            f"{what} in kernel {program.name}, {program.place(instr)}: {who} executes it, and its own mask, "
            f"{int(masks[first]):#010x}, does not name it. PTX leaves undefined what happens then\n"
            f"  Look at: the mask, which must name all lanes that come; or an if around the {what} that only "
            "the lanes of the mask take"
        )
        self._warn(site, instr, text)
        return True

    def _warn(self, site, instr, text: str) -> None:
        program, warnings = self.machine.program, self.machine.sync_warnings
        warnings["lanes", site] = text, program.file_of(instr.file) or program.name, instr.line

    def check(self, index: int, group, waiting) -> None:
        """Look for absent lanes in ``group``, which has executed basic block ``index``, and in the groups
        ``waiting`` at barriers.
        """
        if not self.machine.program.quiet[index]:
            self._warn_absent(index, group)
        if self.looked != self.changes:
            self.looked = self.changes
            for at, other in waiting:
                self._warn_absent(at, other)

    def _warn_absent(self, index: int, group) -> None:
        """``group`` has an effect that other lanes see: warn of exchanges that its lanes are absent from."""
        if group.cleared == self.changes:  # none of its lanes was absent
            return
        group.cleared, program = self.changes, self.machine.program
        for site, (came, masks) in list(self.of_site.items()):
            here = np.flatnonzero(came[group.lanes] >= 0)
            if not here.size:
                continue
            away = group.lanes[here[0]]
            instr, name = program.sites[site], self.machine.thread_name
            what = WARP_WIDE[instr.opcode]
            text = (
                f"{what} in kernel {program.name}, {program.place(instr)}: the mask of {name(came[away])}, "
                f"{int(masks[away]):#010x}, names {name(away)}, which did not come with it but goes "
                f"on at {program.line_of_block(index)}. PTX has a lane wait for all that its mask names, and "
                "CUDA C++ calls the result undefined where one of them stays away; the engine has answered "
                f"for those that came\n  Look at: the if or the loop around the {what}; let all lanes come "
                "to it, or take the mask from __ballot_sync before the branch; where all come in the end, "
                "put a __syncwarp() before it"
            )
            self._warn(site, instr, text)
            del self.of_site[site]
