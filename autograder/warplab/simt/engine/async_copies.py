"""Refuses reads of shared memory that ``cp.async`` may still be writing, before a wait by the thread that
started the copy.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.clusters import MEMORIES
from warplab.simt.errors import UnfinishedCopy
from warplab.simt.observer import Observer

WORD = 4
NOBODY = -1


class ChunkWatch(Observer):
    """An observer of one chunk of thread blocks, which removes itself at the chunk's end. A thread's
    asynchronous operations form groups, numbered by its commits, of which those before ``finished`` are
    complete.
    """

    def __init__(self, machine):
        self.committed, self.finished = np.zeros((2, machine.lanes), np.int64)

    def commit(self, group) -> None:
        self.committed[group.lanes] += 1

    def wait_group(self, group, last: int) -> None:
        """Finish all groups of each lane except the last ``last`` ones."""
        self.finish(group.lanes, self.committed[group.lanes] - last)

    def finish(self, lanes, groups) -> None:
        self.finished[lanes] = np.maximum(self.finished[lanes], groups)

    def done(self, machine):
        machine.observers.remove(self)


class AsyncCopies(ChunkWatch):
    """Observer that raises UnfinishedCopy. The first ``cp.async`` of a chunk adds it to the machine."""

    def __init__(self, machine):
        super().__init__(machine)
        words = machine.shared.size // WORD
        self.owner = np.full(words, NOBODY, np.int64)  # the lane whose copy writes the word
        self.number = np.zeros(words, np.int64)  # the group of that copy
        self.site = np.zeros(words, np.int64)  # its site
        self.tracked: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}  # by phase: lanes, and their groups

    def copied(self, group, site, byte, size: int):
        """The group's lanes copy ``size`` bytes to ``byte`` of the chunk's shared memory."""
        for word in words_of(group, byte, size):
            self.owner[word], self.number[word] = group.lanes, self.committed[group.lanes]
            self.site[word] = site

    def wait(self, group, last: int):
        """``cp.async.wait_group last``; -1 (``wait_all``) also waits for copies that are not committed."""
        if last < 0:
            self.commit(group)
            last = 0
        self.wait_group(group, last)

    def track(self, lanes: np.ndarray, phases: np.ndarray) -> None:
        """The lanes' copies so far are finished by a wait for ``phases`` of mbarriers."""
        self.committed[lanes] += 1
        for phase in np.unique(phases).tolist():
            mine = lanes[phases == phase]
            self.tracked.setdefault(phase, []).append((mine, self.committed[mine]))

    def waited(self, machine, lanes, phases):
        for phase in np.unique(phases).tolist():
            for mine, committed in self.tracked.pop(phase, ()):
                self.finish(mine, committed)

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Refuse a read of words that a copy may still write; a store to them ends the watch."""
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
        here, there = program.line_of_site(site), program.line_of_site(int(self.site[at]))
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
    """The numbers of the words in ``width`` bytes from ``byte`` on: an array for each word of a lane."""
    first = np.broadcast_to(byte // WORD, (group.size,))
    return [first + part for part in range(max(1, width // WORD))]


def copies(memory) -> AsyncCopies:
    """The chunk's AsyncCopies."""
    return memory.watch(AsyncCopies)
