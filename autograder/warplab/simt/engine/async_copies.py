"""Reads of shared memory that ``cp.async`` is still filling:
nothing says that the data are there before the copier's wait.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.clusters import MEMORIES
from warplab.simt.errors import UnfinishedCopy
from warplab.simt.observer import Observer

WORD = 4
NOBODY = -1


class ChunkWatch(Observer):
    """An observer of one chunk of thread blocks, which leaves with it. What a thread does asynchronously
    forms groups, numbered by its commits: some are finished, and those since may still be under way.
    """

    def __init__(self, machine):
        self.committed, self.finished = np.zeros((2, machine.lanes), np.int64)

    def commit(self, group) -> None:
        self.committed[group.lanes] += 1

    def wait_group(self, group, last: int) -> None:
        """All but the ``last`` groups of each lane are finished."""
        self.finish(group.lanes, self.committed[group.lanes] - last)

    def finish(self, lanes, groups) -> None:
        self.finished[lanes] = np.maximum(self.finished[lanes], groups)

    def done(self, machine):
        machine.observers.remove(self)


class AsyncCopies(ChunkWatch):
    """Observer that raises UnfinishedCopy; the first ``cp.async`` of a chunk of blocks adds it to the
    machine, and all report copies, commits and waits.

    A thread's copies form groups, numbered by its commits; ``wait_group n`` completes all but its last n
    groups.
    """

    def __init__(self, machine):
        super().__init__(machine)
        words = machine.shared.size // WORD
        self.owner = np.full(words, NOBODY, np.int64)  # the lane whose copy fills this word
        self.number = np.zeros(words, np.int64)  # and the group of that copy
        self.line = np.zeros(words, np.int64)
        self.tracked: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}  # by phase: lanes, and their groups

    def copied(self, group, site, byte, size: int):
        """The group's lanes copy ``size`` bytes to ``byte`` of the chunk's shared memory."""
        for word in words_of(group, byte, size):
            self.owner[word], self.number[word] = group.lanes, self.committed[group.lanes]
            self.line[word] = site

    def wait(self, group, last: int):
        """All but the ``last`` groups are there; -1 finishes also what was not committed."""
        if last < 0:
            self.commit(group)
            last = 0
        self.wait_group(group, last)

    def track(self, lanes: np.ndarray, phases: np.ndarray) -> None:
        """The lanes' copies so far arrive in phases of mbarriers: a wait for the phase finishes them."""
        self.committed[lanes] += 1
        for phase in np.unique(phases).tolist():
            mine = lanes[phases == phase]
            self.tracked.setdefault(phase, []).append((mine, self.committed[mine]))

    def waited(self, machine, lanes, phases):
        for phase in np.unique(phases).tolist():
            for mine, committed in self.tracked.pop(phase, ()):
                self.finish(mine, committed)

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space not in MEMORIES:
            return
        for word in words_of(group, access.offset + offset, width):
            if what == "write":
                self.owner[word] = NOBODY
                continue
            owner = self.owner[word]
            pending = (owner != NOBODY) & (self.number[word] >= self.finished[owner])
            if pending.any():
                self._raise(machine, group, site, int(np.flatnonzero(pending)[0]), word)

    def _raise(self, machine, group, site, i: int, word):
        program, at = machine.program, int(word[i])
        reader, copier = machine.thread_name(group.lanes[i]), machine.thread_name(self.owner[at])
        here, there = program.line_of_site(site), program.line_of_site(int(self.line[at]))
        whose = "its own asynchronous copy" if reader == copier else f"the asynchronous copy of {copier}"
        raise program.error(
            UnfinishedCopy,
            site,
            f"{reader} reads a shared word (byte offset {at * WORD % machine.shared_stride}, {here}) "
            f"that {whose} ({there}) may not have filled yet",
            "__pipeline_wait_prior(n) or cp.async.wait_group n: "
            "n is the number of later groups that may still be on their way; "
            "then __syncthreads(); or a wait at the barrier at which the copy arrives",
        )


def words_of(group, byte: np.ndarray, width: int) -> list[np.ndarray]:
    """The words that the group's lanes touch from a byte on: one of each lane in an array, array by array."""
    first = np.broadcast_to(byte // WORD, (group.size,))
    return [first + part for part in range(max(1, width // WORD))]


def copies(memory) -> AsyncCopies:
    """The chunk's watch over asynchronous copies."""
    return memory.watch(AsyncCopies)
