"""Refuses accesses to shared memory that a copy by TMA may still be reading or writing. The engine itself
makes copies at once.

Memory that a copy writes may be used after a wait for the phase of the mbarrier at which it completes. Memory
that a copy reads may be written after ``wait_group`` by the thread that started it, or, for a copy to another
block, after a wait for the phase. The block must not end before that either. TMA accesses memory through
another path ("proxy") than threads do: it sees what threads have written only if the writer, or the thread
that starts the copy, has executed ``fence.proxy.async`` after the write.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.async_copies import NOBODY, WORD, ChunkWatch, words_of
from warplab.simt.engine.clusters import MEMORIES
from warplab.simt.errors import SharedRace, UnfinishedCopy

STARTED = 1 << 61  # ``number`` is the number of a bulk group below it, and stands for a phase above it
UNTIL_PHASE = 1 << 62
OF_GROUP = "cp.async.bulk.commit_group and wait_group.read by the thread that started the copy"
OF_PHASE = (
    "a wait for the phase of the mbarrier at which the copy completes: mbarrier.try_wait, bar.wait(token)"
)


class BulkWatch(ChunkWatch):
    """Observer that raises UnfinishedCopy, and SharedRace for a missing fence. Each chunk of blocks of a
    program with bulk copies has one.
    """

    def __init__(self, machine):
        super().__init__(machine)
        words = machine.shared.size // WORD
        self.filler, self.reader, self.writer = np.full((3, words), NOBODY, np.int64)  # lanes, by word
        self.phase, self.number, self.written_at = np.zeros((3, words), np.int64)
        self.fill_site, self.read_site, self.write_site = np.zeros((3, words), np.int32)
        self.fenced_at = np.zeros(machine.lanes, np.int64)
        self.filling: dict[int, list[np.ndarray]] = {}  # by phase: words
        self.reading: dict[int, list[np.ndarray]] = {}
        self.now, self.of_copy = 0, False

    def fill(self, lanes, words, phases, site: int) -> None:
        """The lanes' copies write ``words``, and complete in ``phases`` of mbarriers."""
        self.filler[words], self.phase[words], self.fill_site[words] = lanes, phases, site
        for phase in np.unique(phases).tolist():
            self.filling.setdefault(phase, []).append(words[np.broadcast_to(phases == phase, words.shape)])

    def read(self, lanes, words, site: int, phases=None) -> None:
        """The lanes' copies read ``words``, as part of a bulk group or until ``phases`` of mbarriers."""
        self.reader[words], self.read_site[words] = lanes, site
        self.number[words] = self.committed[lanes] if phases is None else UNTIL_PHASE - phases
        for phase in () if phases is None else np.unique(phases).tolist():
            self.reading.setdefault(phase, []).append(words[phases == phase])

    def waited(self, machine, lanes, phases):
        for phase in np.unique(phases).tolist():
            for words in self.filling.pop(phase, ()):
                self.filler[words[self.phase[words] == phase]] = NOBODY
            for words in self.reading.pop(phase, ()):
                self.reader[words[self.number[words] == UNTIL_PHASE - phase]] = NOBODY

    def left(self, machine, blocks):
        """Refuse the end of blocks whose shared memory a copy may still read or write."""
        size = machine.shared_stride // WORD
        for block in blocks.tolist():
            own = np.arange(block * size, (block + 1) * size)
            fills = own[self.filler[own] != NOBODY]
            if fills.size:
                self._ends(machine, block, fills[0], self.filler, self.fill_site, "filled", OF_PHASE)
            reads = own[self._is_read(own)]
            if reads.size:
                hint = OF_PHASE if self.number[reads[0]] > STARTED else OF_GROUP
                self._ends(machine, block, reads[0], self.reader, self.read_site, "read", hint)

    def _is_read(self, words) -> np.ndarray:
        """Whether a copy may still read each of the ``words``."""
        reader = self.reader[words]
        return (reader != NOBODY) & (self.number[words] >= self.finished[reader])

    def _ends(self, machine, block: int, word, copier, site, does: str, hint: str) -> None:
        place, who = self._what(machine, word), machine.thread_name(copier[word])
        raise machine.program.error(
            UnfinishedCopy,
            int(site[word]),
            f"block {machine.block_name(block)} ends, and the bulk copy that {who} starts here may not have "
            f"{does} {place} yet: a block's shared memory is gone when its last thread leaves",
            f"{hint}, before the end of the kernel",
        )

    def fence_proxy(self, group) -> None:
        self.now += 1
        self.fenced_at[group.lanes] = self.now

    def bulk(self, machine, group, site, access, width, space, what, values):
        self.of_copy = True
        self.accessed(machine, group, site, access, 0, width, space, what, values)
        self.of_copy = False

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Refuse uses of words that a copy may still write, and stores to words that it may still read."""
        if space not in MEMORIES:
            return
        for word in words_of(group, access.offset + offset, width):
            filler = self.filler[word]
            if (filler != NOBODY).any():
                self._early(machine, group, site, word, filler != NOBODY, what)
            if what == "read":
                if self.of_copy:
                    self.by_proxy(machine, group.lanes, word, site)
                continue
            pending = self._is_read(word)
            if pending.any():
                self._overwrites(machine, group, site, word, pending)
            self.writer[word] = NOBODY if self.of_copy else group.lanes
            self.written_at[word], self.write_site[word] = self.now, site

    def by_proxy(self, machine, lanes, word, site: int, reader="bulk copy", unit="TMA") -> None:
        """The asynchronous proxy reads words for lanes: refuse those written without a fence since.

        ``reader`` and ``unit``: the operation that reads, and the unit that executes it, for the message.
        """
        writer, when = self.writer[word], self.written_at[word]
        unseen = (writer != NOBODY) & (self.fenced_at[writer] <= when) & (self.fenced_at[lanes] <= when)
        if not unseen.any():
            return
        i = int(np.flatnonzero(unseen)[0])
        here, what = self._place(machine, site), self._what(machine, word[i])
        there = self._place(machine, int(self.write_site[word[i]]))
        raise machine.program.error(
            SharedRace,
            site,
            f"the {reader} of {machine.thread_name(lanes[i])} reads {what} ({here}) that "
            f"{machine.thread_name(writer[i])} writes ({there}), with no fence.proxy.async between them: "
            f"{unit} may read what was there before",
            "fence.proxy.async by each thread that has written (cuda::ptx::fence_proxy_async), "
            f"then __syncthreads(), then the {reader}",
        )

    def _early(self, machine, group, site, word, bad, what) -> None:
        i, does = int(np.flatnonzero(bad)[0]), "reads" if what == "read" else "writes"
        who, copier = machine.thread_name(group.lanes[i]), machine.thread_name(self.filler[word[i]])
        whose = "its own bulk copy" if who == copier else f"the bulk copy of {copier}"
        there = self._place(machine, int(self.fill_site[word[i]]))
        raise machine.program.error(
            UnfinishedCopy,
            site,
            f"{who} {does} {self._what(machine, word[i])} ({self._place(machine, site)}) that {whose} "
            f"({there}) may not have filled yet",
            f"{OF_PHASE}, before this line",
        )

    def _overwrites(self, machine, group, site, word, bad) -> None:
        i = int(np.flatnonzero(bad)[0])
        copier, by_phase = machine.thread_name(self.reader[word[i]]), self.number[word[i]] > STARTED
        there = self._place(machine, int(self.read_site[word[i]]))
        raise machine.program.error(
            UnfinishedCopy,
            site,
            f"{machine.thread_name(group.lanes[i])} writes {self._what(machine, word[i])} "
            f"({self._place(machine, site)}) that the bulk copy of {copier} ({there}) may not have read yet",
            f"{OF_PHASE if by_phase else OF_GROUP}, then __syncthreads(), then the next write",
        )

    def _what(self, machine, word) -> str:
        return machine.program.shared_place(int(word) * WORD % machine.shared_stride, WORD)

    def _place(self, machine, site: int) -> str:
        return machine.program.line_of_site(site)
