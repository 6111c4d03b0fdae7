"""Groups of lanes at one place of a program, and how their registers are split and joined."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warplab.simt.engine.address_space import Access
from warplab.simt.engine.warp import WarpTable
from warplab.simt.engine.wrapped import wrapped_in


class Group:
    """Lanes (sorted indices into the chunk) at one place of the program, with their registers."""

    def __init__(self, machine, lanes: np.ndarray, regs: dict[str, np.ndarray], full: bool):
        self.machine, self.lanes, self.regs, self.full = machine, lanes, regs, full
        self._special: dict[str, np.ndarray] = {}
        self.accesses: dict[tuple[str, int], Access] = {}
        self.noted: set[tuple[int, int]] = set()  # exchanges that have been checked: site and mask
        self.present: np.ndarray | None = None  # a mask that has been found to name only the group's lanes
        self.cleared = 0  # the value of ``AbsentLanes.changes`` up to which the group has been checked

    @property
    def size(self) -> int:
        return self.lanes.size

    def special(self, name: str) -> np.ndarray:
        """A special register for the lanes of the group; one element if all have the same value."""
        v = self._special.get(name)
        if v is None:
            v = self.machine.special(name)
            if v.size > 1 and not self.full:
                v = v[self.lanes]
            self._special[name] = v
        return v

    @cached_property
    def warp(self) -> np.ndarray:
        """Warp number of each lane, in the chunk."""
        return self.machine.warp_of_lane if self.full else self.machine.warp_of_lane[self.lanes]

    @cached_property
    def firsts(self) -> np.ndarray:
        """The index in the group of each warp's first lane."""
        new = np.ones(self.size, bool)
        new[1:] = self.warp[1:] != self.warp[:-1]
        return np.flatnonzero(new)

    @cached_property
    def row(self) -> np.ndarray:
        """The rank of each lane's warp among the warps with a lane in this group: 0, 0, ..., 1, 1, ..."""
        steps = np.zeros(self.size, np.int64)
        steps[self.firsts[1:]] = 1
        return np.cumsum(steps)

    @cached_property
    def warps(self) -> int:
        return self.machine.warps if self.full else self.firsts.size

    @cached_property
    def column(self) -> np.ndarray:
        """Lane number within the warp, 0 to 31."""
        column = self.machine.column_of_lane
        return column if self.full else column[self.lanes]

    @cached_property
    def absent(self) -> np.ndarray | None:
        """For each lane a mask of its warp's threads that are not in the group; None if there are none."""
        machine = self.machine
        threads = machine.launch.threads - (machine.thread_of_lane[self.lanes[self.firsts]] & ~31)
        there = (np.int64(1) << np.minimum(threads, 32)) - 1
        here = np.bitwise_or.reduceat(np.int64(1) << self.column, self.firsts)
        absent = (there & ~here).astype(np.uint32)
        return absent[self.row] if absent.any() else None

    @cached_property
    def four_warps(self) -> np.ndarray:
        """The number of each lane's warp group (four warps) in the chunk."""
        machine = self.machine
        return machine.block_of_lane[self.lanes] << 8 | machine.thread_of_lane[self.lanes] // 128

    @cached_property
    def lacks_warps(self) -> bool:
        """Whether some lane of a warp group (four warps) is missing from the group."""
        return bool((np.unique(self.four_warps, return_counts=True)[1] != 128).any())

    @cached_property
    def table(self) -> WarpTable:
        """The group's lanes laid out by warp, for shuffles and votes."""
        return WarpTable(self)

    def split(self, mask: np.ndarray, live: frozenset[str]) -> Group:
        """The lanes where ``mask`` is true, with the registers in ``live``."""
        keep = np.flatnonzero(mask)
        regs = {k: (v if v.size == 1 else v[keep]) for k, v in self.regs.items() if k in live}
        return Group(self.machine, self.lanes[keep], regs, False)


def joined(parts: list, places: list, size: int):
    """A register of a merged group of ``size`` lanes. ``places`` are the indices of each part's lanes; a part
    is None if its group never wrote the register, which then reads as zero.
    """
    known = [part for part in parts if part is not None]
    wrapped = next(wrapped_in(known), None)
    if wrapped is not None:
        return wrapped.joined(parts, places, size)
    if len(known) == len(parts) and all(same_number(part, known[0]) for part in known):
        return known[0]
    whole = np.zeros(size, known[0].dtype)
    for part, place in zip(parts, places):
        if part is not None:
            whole[place] = part
    return whole


def same_number(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether both are one number for all lanes, with the same bits."""
    return one is other or (one.size == other.size == 1 and one.tobytes() == other.tobytes())
