"""Who knows what the others have done, in kernels with fences or with barriers of some threads of a block.

A vector clock for each *actor*: a thread of the grid, in larger launches a warp or a block, or several blocks
(then what one of its threads does counts for all, which errs towards silence). A row has two columns an
actor: until which moment its accesses come before what the row's actor does next, and until which moment its
strong accesses do, for whoever meets a flag may then touch the flag itself.

A fence keeps what an actor knows as what it may *release*. Its strong writes leave that at their address, a
*flag*; strong reads of the flag take it over. An atomic does both, so a chain of atomics passes all on, and a
strong store puts its own in the place of what was there. By the PTX memory model a reader needs a fence too;
programs that NVIDIA published go without, and so does this. Barriers join what their threads know and what
they may release: all threads may fence, meet, and have one of them set the flag.
"""

from __future__ import annotations

import numpy as np

MOST = 1024  # actors
GRID = -1  # in the place of a block: for all of them


class Flag:
    """An address of strong accesses: what was released there, by the block that it reaches or for all."""

    def __init__(self):
        self.rows: dict[int, np.ndarray] = {}
        self.version = 0
        self.seen: dict[int, int] = {}  # by actor, the version that it has taken over
        self.given: dict[int, int] = {}  # by actor, the state of its release that is in it


class Releases:
    """The clocks of one launch. ``begin``: the moments of the last barriers before there was any."""

    def __init__(self, launch, grid_barrier_at: int, barrier_at: int, warp_at: np.ndarray | None):
        self.size = launch.threads
        warps = -(-launch.threads // 32)
        self.share = 1
        if launch.blocks * launch.threads <= MOST:
            self.per_block, self.grain = launch.threads, 1
        elif launch.blocks * warps <= MOST:
            self.per_block, self.grain = warps, 32
        else:
            self.per_block, self.grain, self.share = 1, launch.threads, -(-launch.blocks // MOST)
        self.actors = -(-launch.blocks // self.share) * self.per_block
        everyone = np.arange(self.actors)
        self.block = everyone // self.per_block
        self.warp = self.block * warps + everyone % self.per_block * self.grain // 32
        self.knows = np.full((self.actors, 2 * self.actors), grid_barrier_at, np.int32)
        self._join_all(self.block, barrier_at)
        if warp_at is not None and self.share == 1:
            for warp in np.unique(self.warp).tolist():
                mine = np.flatnonzero(self.warp == warp)
                self._raise_to(mine, int(warp_at[warp]))
        shape = self.actors, 2 * self.actors
        self.release = {True: np.zeros(shape, np.int32), False: np.zeros(shape, np.int32)}
        self.state = np.zeros(self.actors, np.int64)  # 0: it has nothing to release
        self.flags: dict[int, Flag] = {}
        self.clean = True  # since the last barrier nobody learnt anything

    def of(self, thread: np.ndarray) -> np.ndarray:
        """The actors of threads of the grid."""
        block = thread // self.size
        return block // self.share * self.per_block + (
            thread % self.size // self.grain if self.per_block > 1 else 0
        )

    def before(self, thread: np.ndarray, rival: np.ndarray, time: np.ndarray, strong: bool) -> np.ndarray:
        """Whether what ``rival`` did at ``time`` comes before what ``thread`` does now."""
        return self.knows[self.of(thread), self.of(rival) + (self.actors if strong else 0)] >= time

    def has_fenced(self, thread: np.ndarray) -> np.ndarray:
        return self.state[self.of(thread)] > 0

    def _raise_to(self, mine: np.ndarray, moment: int) -> None:
        rows = np.ix_(mine, np.concatenate([mine, mine + self.actors]))
        self.knows[rows] = np.maximum(self.knows[rows], moment)

    def _join_all(self, together: np.ndarray, moment: int) -> None:
        for number in np.unique(together).tolist():
            self._raise_to(np.flatnonzero(together == number), moment)

    def met(self, threads: np.ndarray, together: np.ndarray, now: int) -> None:
        """Threads with one number in ``together`` have met."""
        actors = self.of(threads)
        if self.grain > 1 and (self.per_block == 1 or np.unique(together).size == np.unique(actors).size):
            self.knows[actors, actors] = self.knows[actors, actors + self.actors] = now
            return
        order = np.argsort(together, kind="stable")
        for part in np.split(actors[order], np.flatnonzero(np.diff(together[order])) + 1):
            self.meet(np.unique(part), now)
        self.clean = False

    def meet(self, actors: np.ndarray, now: int) -> None:
        """These have met: each knows what the others know and did, and may release what they may."""
        knows = self.knows[actors].max(axis=0)
        knows[actors] = knows[actors + self.actors] = now
        self.knows[actors] = knows
        if self.state[actors].any():
            for release in self.release.values():
                release[actors] = release[actors].max(axis=0)
            self.state[actors] += 1

    def barrier(self, now: int, grid: bool) -> None:
        """All threads of all blocks pass barriers."""
        if grid:
            self.meet(np.arange(self.actors), now)
        elif self.per_block > 1 and self.clean:  # nothing to hand on but that they met
            mine = np.arange(self.actors).reshape(-1, self.per_block)
            for columns in (mine, mine + self.actors):
                self.knows[mine[:, :, None], columns[:, None, :]] = now
        elif self.per_block > 1:
            for first in range(0, self.actors, self.per_block):
                self.meet(np.arange(first, first + self.per_block), now)
        self.clean = True

    def fence(self, thread: np.ndarray, now: int, wide: bool) -> None:
        actors = np.unique(self.of(thread))
        rows = self.knows[actors]
        own = np.arange(actors.size)
        rows[own, actors] = rows[own, actors + self.actors] = now
        self.release[False][actors] = rows
        if wide:
            self.release[True][actors] = rows
        self.state[actors] += 1
        self.clean = False

    def take_all(self, thread: np.ndarray) -> None:
        """Threads take over all that was released in their block."""
        for actor in np.unique(self.of(thread)).tolist():
            mine = self.block == self.block[actor]
            self._learn(np.array([actor]), self.release[False][mine].max(axis=0))

    def take(self, thread: np.ndarray, rival: np.ndarray) -> None:
        """Each takes over what a rival may release: the flag was a plain store behind its fence."""
        for one, other in set(zip(self.of(thread).tolist(), self.of(rival).tolist())):
            wide = self.block[one] != self.block[other]
            self._learn(np.array([one]), self.release[bool(wide)][other])

    def _learn(self, actors: np.ndarray, row: np.ndarray) -> None:
        self.knows[actors] = np.maximum(self.knows[actors], row)
        self.clean = False

    def strong(self, address, thread, now: int, reads, writes, tries: bool, narrow: bool) -> None:
        """Strong accesses of threads in turn: an atomic reads and writes, and what only ``tries`` to write (a
        compare-and-swap) may be repeated without end. ``narrow``: of the scope of their block.
        """
        actor = self.of(thread)
        if not self.flags and not (writes and self.state[actor].any()):
            return
        if address.size == 1 or (address == address[0]).all():
            self._at_flag(int(address[0]), actor, now, reads, writes, tries, narrow)
            return
        order = np.argsort(address, kind="stable")
        ends = np.flatnonzero(np.diff(address[order])) + 1
        for lanes in np.split(order, ends):
            self._at_flag(int(address[lanes[0]]), actor[lanes], now, reads, writes, tries, narrow)

    def _at_flag(self, address: int, actors: np.ndarray, now: int, reads, writes, tries, narrow) -> None:
        flag = self.flags.get(address)
        if flag is None:
            if not writes or not self.state[actors].any():
                return
            flag = self.flags[address] = Flag()
        if not reads:
            flag.rows.clear()
            flag.given.clear()
            flag.version += 1
            self._give(flag, int(actors[-1]), now, narrow)
            return
        several = actors.tolist()
        if not writes or all(flag.given.get(a, 0) == self.state[a] for a in several):
            self._read(flag, actors, narrow)
            if writes and not tries:
                mine = actors[self.state[actors] > 0]
                for row in flag.rows.values():
                    row[mine + self.actors] = now
                flag.version += mine.size > 0
            return
        for actor in several:
            self._read(flag, np.array([actor]), narrow)
            self._give(flag, actor, now, narrow)

    def _read(self, flag: Flag, actors: np.ndarray, narrow: bool) -> None:
        late = [a for a in set(actors.tolist()) if flag.seen.get(a) != flag.version]
        if not late:
            return
        for block, row in flag.rows.items():
            reached = [a for a in late if block == self.block[a] or block == GRID and not narrow]
            if reached:
                self._learn(np.array(reached), row)
        if not narrow:
            flag.seen.update(dict.fromkeys(late, flag.version))

    def _give(self, flag: Flag, actor: int, now: int, narrow: bool) -> None:
        if not self.state[actor]:
            return
        for block, wide in ((GRID, True), (int(self.block[actor]), False))[narrow:]:
            row = self.release[wide][actor].copy()
            if row.any():
                row[self.actors + actor] = now
                known = flag.rows.get(block)
                flag.rows[block] = row if known is None else np.maximum(known, row)
        flag.version += 1
        if not narrow:
            flag.given[actor] = int(self.state[actor])
