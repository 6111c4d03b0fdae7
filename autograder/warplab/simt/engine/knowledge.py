"""What each thread knows that others have done: whose accesses come before its own, by mbarriers.

A vector clock for each lane of a chunk, with two columns for each thread of its block: how far the lane knows
the thread's accesses, and how far its asynchronous copies, in moments. Whoever arrives at an mbarrier
*publishes* under the number of that phase what he did and knows; whoever waits for the phase *takes over* all
that was published there. ``syncwarp`` and the barriers of a block join what their threads know. Many lanes
know the same: rows of the table are shared, and none is changed once it is made, so that a log may keep them.

It begins with a kernel's first mbarrier; what was done before that has the moment 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEW_ROWS = 64  # so many may lie about that no lane has any more


@dataclass(frozen=True)
class Known:
    """What the lanes of one group knew at one moment."""

    rows: np.ndarray
    row: np.ndarray
    now: int
    threads: int  # of a block

    def moments(self, thread: np.ndarray) -> np.ndarray:
        """Until when each lane knows the accesses of one thread of its block."""
        return self.rows[self.row, thread]

    def all_moments(self, places: np.ndarray) -> np.ndarray:
        """The same of all threads, for the lanes at these places of the group."""
        return self.rows[self.row[places], : self.threads]


class Knowledge:
    """``engine.mbarrier`` makes it for a chunk of blocks, and tells it what happens."""

    def __init__(self, machine):
        self.threads = machine.launch.threads
        self.thread = machine.thread_of_lane
        self.now = 1
        self.fenced = False  # then there are other ways to order what no barrier does
        self.rows = np.zeros((1, 2 * self.threads), np.int32)
        self.row = np.zeros(machine.lanes, np.int64)
        self.most_rows = FEW_ROWS
        self.published = np.zeros((0, 2 * self.threads), np.int32)  # by the number of a phase

    def of(self, lanes: np.ndarray) -> Known:
        return Known(self.rows, self.row[lanes], self.now, self.threads)

    def before(self, lanes: np.ndarray, by: np.ndarray, moment: np.ndarray) -> np.ndarray:
        """Whether each lane comes after what the lane ``by`` of its block did at a moment."""
        return (by == lanes) | (self.rows[self.row[lanes], self.thread[by]] > moment)

    def has_copies(self, lanes: np.ndarray, owner: np.ndarray, moment: np.ndarray) -> np.ndarray:
        """Whether each lane has waited for what ``owner`` began to copy at a moment."""
        return self.rows[self.row[lanes], self.threads + self.thread[owner]] > moment

    def opened(self, phases: np.ndarray) -> None:
        """Phases begin, under numbers that others may have had before."""
        most = int(phases.max(initial=-1)) + 1
        if most > len(self.published):
            more = np.zeros((2 * most - len(self.published), 2 * self.threads), np.int32)
            self.published = np.concatenate([self.published, more])
        self.published[phases] = 0

    def publish(self, lanes: np.ndarray, phases: np.ndarray) -> None:
        """Each lane arrives in a phase."""
        self.now += 1
        pairs = np.unique(phases * len(self.rows) + self.row[lanes])
        for pair in pairs.tolist():
            phase, row = divmod(pair, len(self.rows))
            np.maximum(self.published[phase], self.rows[row], out=self.published[phase])
        self.published[phases, self.thread[lanes]] = self.now

    def publish_copies(self, lanes: np.ndarray, phases: np.ndarray) -> None:
        """The copies that each lane has begun arrive in a phase; it counts as their thread's arrival too."""
        self.now += 1
        self.published[phases, self.thread[lanes]] = self.now
        self.published[phases, self.threads + self.thread[lanes]] = self.now

    def take_over(self, lanes: np.ndarray, phases: np.ndarray) -> None:
        """Each lane has waited for a phase."""
        self.now += 1
        held, inverse = np.unique(self.row[lanes] * len(self.published) + phases, return_inverse=True)
        row, phase = np.divmod(held, len(self.published))
        self._put(lanes, inverse, np.maximum(self.rows[row], self.published[phase]))

    def _put(self, lanes: np.ndarray, which: np.ndarray, rows: np.ndarray) -> None:
        """Each lane knows from now on what one of these new rows says."""
        self.row[lanes] = len(self.rows) + which
        self.rows = np.concatenate([self.rows, rows])
        if len(self.rows) > self.most_rows:
            used, self.row = np.unique(self.row, return_inverse=True)
            self.rows = self.rows[used]
            self.most_rows = 2 * used.size + FEW_ROWS

    def join(self, lanes: np.ndarray, together: np.ndarray) -> None:
        """Lanes with one number in ``together`` learn what the others of them know and have done."""
        self.now += 1
        numbers, which = np.unique(together, return_inverse=True)
        rows = np.zeros((numbers.size, 2 * self.threads), np.int32)
        pairs = np.unique(which * len(self.rows) + self.row[lanes])
        np.maximum.at(rows, pairs // len(self.rows), self.rows[pairs % len(self.rows)])
        rows[which, self.thread[lanes]] = self.now
        self._put(lanes, which, rows)
