"""Vector clocks: which accesses happen before what a thread does next.

Every access has a time, a number that grows through the launch. As long as a kernel has only whole-block
barriers, grid barriers and ``syncwarp``, the time of the last of each orders all accesses. From the first
fence, arrival at an mbarrier or barrier of some threads on there are vector clocks too: accesses of actor
``b`` until the time ``knows[a, b]`` happen before what actor ``a`` does next. An *actor* is a thread; in
launches of more than ``MOST`` threads it is a warp, else a block, else several blocks.

A *flag* is an address of atomics and other strong accesses. A strong write by a thread that has fenced
*releases*: it leaves at the flag the thread's clock, with its own accesses up to the fence. A strong read
*acquires* that clock.

Where this departs from the PTX memory model, it orders more, so that it may miss a race but gives no false
alarm: what one thread of an actor does counts for all its threads; a reader needs no fence; threads that meet
share their fences; a released clock stays at its flag.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

MOST = 1024  # actors
THREAD_BITS = 32
THREAD = (1 << THREAD_BITS) - 1
ANY_BLOCK = -1


class Clocks:
    """The clocks of one launch. Threads are numbered through the grid."""

    def __init__(self):
        self.now = 1
        self.synchronised = 0  # number of events so far that may order accesses
        self.grid_barrier_at = self.barrier_at = 0
        self.warp_barrier_at: np.ndarray | None = None
        self.has_clocks = False  # whether there are vector clocks
        self.fenced = False  # whether any thread has fenced

    def ordered(self, launch, thread: np.ndarray, rival: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Whether what ``rival`` did at ``time`` happens before what ``thread`` does next."""
        size = launch.threads
        same_block = thread // size == rival // size
        out = (thread == rival) | (time <= self.grid_barrier_at) | (same_block & (time <= self.barrier_at))
        if self.warp_barrier_at is not None:
            warp = warp_of(thread, size)
            out |= (warp == warp_of(rival, size)) & (time <= self.warp_barrier_at[warp])
        if self.has_clocks:
            out |= self.knows[self._actor(thread), self._actor(rival)] >= time
        return out

    def begin(self, launch) -> None:
        """Create the vector clocks, if they do not exist yet."""
        if self.has_clocks:
            return
        self.has_clocks, self.size = True, launch.threads
        warps, self.blocks_each = -(-launch.threads // 32), 1
        if launch.blocks * launch.threads <= MOST:
            self.per_block, self.threads_each = launch.threads, 1
        elif launch.blocks * warps <= MOST:
            self.per_block, self.threads_each = warps, 32
        else:
            self.per_block, self.threads_each = 1, launch.threads
            self.blocks_each = -(-launch.blocks // MOST)
        actors = np.arange(-(-launch.blocks // self.blocks_each) * self.per_block)
        self.block = actors // self.per_block
        self.knows = np.full((actors.size, actors.size), self.grid_barrier_at, np.int32)
        self.fence_at = {wide: np.zeros(actors.size, np.int32) for wide in (False, True)}
        # flag -> block that may acquire it, or ANY_BLOCK -> the released clock
        self.flags: dict[Hashable, dict[int, np.ndarray]] = {}
        self._met_in_blocks(self.barrier_at)
        if self.warp_barrier_at is not None and self.threads_each == 1:
            warp = warp_of(actors, self.size)
            at = self.warp_barrier_at[warp]
            self.knows = np.maximum(self.knows, np.where(warp[:, None] == warp, at[:, None], 0))

    def _actor(self, thread: np.ndarray) -> np.ndarray:
        within = thread % self.size // self.threads_each if self.per_block > 1 else 0
        return thread // self.size // self.blocks_each * self.per_block + within

    def barrier(self, grid: bool) -> None:
        """All threads pass a barrier of their block, or of the grid."""
        self.synchronised += 1
        self.barrier_at = self.now
        if grid:
            self.grid_barrier_at = self.now
        if self.has_clocks and grid:
            self._meet(np.arange(self.block.size))
        elif self.has_clocks:
            self._met_in_blocks(self.now)

    def _met_in_blocks(self, moment: int) -> None:
        """The threads of each block met at the time ``moment``."""
        shape = self.block.size // self.per_block, self.per_block
        self.knows = np.repeat(self.knows.reshape(*shape, -1).max(axis=1), self.per_block, axis=0)
        self.knows[self.block[:, None] == self.block] = moment
        for fence_at in self.fence_at.values():
            fence_at[:] = np.repeat(fence_at.reshape(shape).max(axis=1), self.per_block)

    def warp_barrier(self, launch, thread: np.ndarray) -> None:
        """Whole warps pass a ``syncwarp``."""
        self.synchronised += 1
        warps = -(-launch.threads // 32)
        moments = self.warp_barrier_at
        if moments is None:
            moments = self.warp_barrier_at = np.zeros(launch.blocks * warps, np.int64)
        warp = warp_of(thread, launch.threads)
        moments[warp] = self.now
        if self.has_clocks and self.threads_each == 1:
            self._meet_in_parts(thread, warp)

    def met(self, launch, thread: np.ndarray, together: np.ndarray) -> None:
        """Threads with one number in ``together`` have met."""
        self.begin(launch)
        self.synchronised += 1
        self._meet_in_parts(thread, together)

    def _meet_in_parts(self, thread: np.ndarray, together: np.ndarray) -> None:
        actors = self._actor(thread)
        if self.threads_each > 1 and np.unique(together).size == np.unique(actors).size:
            self.knows[actors, actors] = self.now  # each met within itself
            return
        for _, part in _by_value(together, actors):
            self._meet(part)

    def _meet(self, actors: np.ndarray) -> None:
        known = self.knows[actors].max(axis=0)
        known[actors] = self.now
        self.knows[actors] = known
        for fence_at in self.fence_at.values():
            fence_at[actors] = fence_at[actors].max()

    def fence(self, launch, thread: np.ndarray, wide: bool) -> None:
        """Threads fence; ``wide``: the fence's scope reaches other blocks."""
        self.begin(launch)
        self.fenced = True
        self.synchronised += 1
        for scope in {wide, False}:
            self.fence_at[scope][self._actor(thread)] = self.now

    def has_fenced(self, thread: np.ndarray) -> np.ndarray:
        return self.fence_at[False][self._actor(thread)] > 0

    def at_flags(self, address: np.ndarray, thread: np.ndarray, reads: bool, writes: bool) -> None:
        """Strong accesses, one address a thread; they acquire if they read, and release if they write."""
        self.synchronised += 1
        actors = self._actor(thread)
        if not self.flags and not (writes and self.fence_at[False][actors].any()):
            return
        for flag, mine in _by_value(address, actors):
            if reads:
                self._acquire(flag, mine)
            if writes:
                self._release(flag, ANY_BLOCK, mine, self.fence_at[True], reads)
                for block in np.unique(self.block[mine]).tolist():
                    near = mine[self.block[mine] == block]
                    self._release(flag, block, near, self.fence_at[False], reads)

    def arrive(self, launch, thread: np.ndarray, phase: np.ndarray, relaxed: bool = False) -> None:
        """Each thread arrives in a phase of an mbarrier, which releases all its accesses so far, or if it is
        ``relaxed`` those before the thread's last fence.
        """
        self.begin(launch)
        self.synchronised += 1
        until = self.fence_at[True] if relaxed else np.full(self.block.size, self.now, np.int32)
        for number, actors in _by_value(phase, self._actor(thread)):
            self._release(("phase", number), ANY_BLOCK, actors, until)

    def wait(self, launch, thread: np.ndarray, phase: np.ndarray) -> None:
        """Each thread has waited for a phase of an mbarrier, which acquires what its arrivals released."""
        self.begin(launch)
        self.synchronised += 1
        for number, actors in _by_value(phase, self._actor(thread)):
            self._acquire(("phase", number), actors)

    def known_of_block(self, block: int, rival: np.ndarray) -> np.ndarray:
        """The time until which each ``rival``'s accesses happen before the next of some thread of a block."""
        if not self.has_clocks:
            return np.full(rival.shape, self.grid_barrier_at)
        own = self.block == block // self.blocks_each
        return self.knows[own].max(axis=0)[self._actor(rival)]

    def knows_begin_of(self, thread: np.ndarray, block: np.ndarray) -> np.ndarray:
        """Whether the beginning of a block happens before what each thread does next."""
        if not self.has_clocks:
            return np.full(thread.shape, self.grid_barrier_at > 0)
        said = self.knows[self._actor(thread)] > 0
        return (said & (self.block == block[:, np.newaxis] // self.blocks_each)).any(axis=1)

    def acquire_store(self, thread: np.ndarray, rival: np.ndarray) -> None:
        """Each thread acquires what its rival released by a plain store after a fence."""
        for one, other in set(zip(self._actor(thread).tolist(), self._actor(rival).tolist())):
            fence_at = self.fence_at[bool(self.block[one] != self.block[other])]
            self._release("by hand", ANY_BLOCK, np.array([other]), fence_at)
            self._acquire("by hand", np.array([one]))
            self.flags.pop("by hand", None)

    def _release(self, flag: Hashable, reaches: int, actors: np.ndarray, until: np.ndarray, in_turn=False):
        """Leave the actors' clocks at a flag, each with its own accesses ``until`` a time; 0: nothing.

        ``reaches``: the block that may acquire it, or ANY_BLOCK. ``in_turn``: each actor acquires what those
        before it release, as atomics on one address do.
        """
        known = self.knows[actors]
        known[np.arange(actors.size), actors] = until[actors]
        known[until[actors] == 0] = 0
        known = np.maximum.accumulate(known)
        if known[-1].any():
            rows = self.flags.setdefault(flag, {})
            rows[reaches] = np.maximum(rows.get(reaches, 0), known[-1])
            if in_turn:
                self.knows[actors[1:]] = np.maximum(self.knows[actors[1:]], known[:-1])

    def _acquire(self, flag: Hashable, actors: np.ndarray) -> None:
        for block, row in self.flags.get(flag, {}).items():
            mine = actors if block == ANY_BLOCK else actors[self.block[actors] == block]
            self.knows[mine] = np.maximum(self.knows[mine], row)


def warp_of(thread: np.ndarray, size: int) -> np.ndarray:
    """The numbers of threads' warps in the grid, for blocks of ``size`` threads."""
    return thread // size * -(-size // 32) + thread % size // 32


def _by_value(values: np.ndarray, actors: np.ndarray):
    """(value, the actors that have it) for each distinct value."""
    if not values.size:  # the member mask of a syncwarp may be empty
        return
    if (values == values[0]).all():
        yield int(values[0]), np.unique(actors)
        return
    order = np.argsort(values, kind="stable")
    for lanes in np.split(order, np.flatnonzero(np.diff(values[order])) + 1):
        yield int(values[lanes[0]]), np.unique(actors[lanes])
