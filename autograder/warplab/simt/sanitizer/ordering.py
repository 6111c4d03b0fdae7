"""What a race is: two accesses that clash, and nothing that puts one before the other.

Two accesses by different threads to the same bytes *clash* if one of them writes and not both are strong.
*Strong* accesses are made to be met by other threads: atomics, and loads and stores with ``.relaxed``,
``.acquire``, ``.release`` or ``.volatile``; the hardware gives them some order, so two of them never clash,
unless one has the scope ``.cta`` (``atomicAdd_block``) and the other is another block's.
An atomic is a strong write, and a plain load or store of its word clashes with it like with any write.

A clash is a race unless one access *happens before* the other (PTX ISA, "Memory consistency model"): by the
order of statements in one thread; by a barrier of their block or of the grid, or a ``syncwarp`` of their
warp, that both passed, the one after its access and the other before; by an arrival at an mbarrier after the
one and a wait for that phase before the other; or by release and acquire. The last is a fence of the
writer's, with its strong write behind it or as a release of its own, which a strong access of the reader
observes. What is a chain of such steps is one too: whoever passes a barrier takes along what the others did
before it.

The order by threads, barriers, ``syncwarp`` and mbarriers (``engine.knowledge``) is decided exactly in shared
memory; in global memory an arrival counts as a fence of its block, and a wait takes over what was released
there. Release and acquire are followed from flag to flag in global memory (``releases``). In shared memory it
is only asked whether a fence and a later strong access of the reader's warp are there, which errs towards
silence; so do the readers who need no fence of their own. A plain store by threads that have fenced counts as
strong where it meets strong loads, a compare-and-swap or an exchange: so locks are opened and flags set by
hand. And a plain load of what a compare-and-swap then expects to find counts as strong, for a wrong guess
costs it another turn: so atomics that the hardware has not are made of it.

Shuffles and votes order no memory: only ``syncwarp`` does, and a ``syncwarp`` of some lanes for these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr

READ, WRITE, STRONG_READ, STRONG_WRITE = "read", "write", "strong read", "strong write"
NOBODY, SEVERAL = -1, -2  # in the place of a lane
PIECE = 1 << 11  # lanes for which the moments of all threads of their block are looked at together
BLOCK_READ, BLOCK_WRITE = "read in its block", "write in its block"  # strong ones of scope .cta
VOLATILE_READ, VOLATILE_WRITE = "volatile read", "volatile write"  # strong ones for other warps
STRONG_KINDS = STRONG_READ, STRONG_WRITE, BLOCK_READ, BLOCK_WRITE, VOLATILE_READ, VOLATILE_WRITE
CLASHES = {
    READ: (WRITE, STRONG_WRITE, BLOCK_WRITE, VOLATILE_WRITE),
    WRITE: (WRITE, READ, *STRONG_KINDS),
    STRONG_READ: (WRITE, BLOCK_WRITE),
    STRONG_WRITE: (WRITE, READ, BLOCK_READ, BLOCK_WRITE),
    BLOCK_READ: (WRITE, STRONG_WRITE, BLOCK_WRITE),
    BLOCK_WRITE: (WRITE, READ, STRONG_READ, STRONG_WRITE, BLOCK_READ, BLOCK_WRITE),
    VOLATILE_READ: (WRITE, VOLATILE_WRITE),
    VOLATILE_WRITE: (WRITE, READ, VOLATILE_READ),
}
STRONG = {"relaxed", "acquire", "release", "acq_rel", "mmio"}
RELEASE = {"release", "acq_rel"}
WIDE = {"gl", "gpu", "sys", "cluster"}  # scopes of fences that reach other blocks


@dataclass(frozen=True)
class Kind:
    """What an instruction's accesses are to the other threads.

    ``name`` is one of the eight above. ``releases`` is the scope of the fence that it brings along: "cta",
    "wide", or "" without one. ``by_hand``: it looks at a flag or a lock, which a plain store behind a fence
    may set.
    """

    name: str
    releases: str = ""
    by_hand: bool = False

    @property
    def strong(self) -> bool:
        return self.name in STRONG_KINDS


def kind_of(
    instr: Instr,
    what: str,
    volatile_is_strong: bool = True,
    guesses: Collection[int] = frozenset(),
    several_blocks: bool = True,
) -> Kind:
    """The kind of an access, ``what`` as observers are told: "read", "write" or "atomic".

    guesses: the ids of loads of what a compare-and-swap expects (``Program.guesses``). several_blocks:
    whether threads of other blocks may meet it, of whom a scope may leave out some.
    """
    if id(instr) in guesses:
        return Kind(STRONG_READ)
    mods = set(instr.mods)
    atomic = what == "atomic" or effects_of(instr, INSTRUCTIONS).memory == "atomic"
    if not (atomic or mods & STRONG or (volatile_is_strong and "volatile" in mods)):
        return Kind(what)
    releases = "" if not mods & RELEASE else "cta" if "cta" in mods else "wide"
    narrow = several_blocks and "cta" in mods
    if not (several_blocks or atomic or mods & STRONG):
        return Kind(VOLATILE_READ, by_hand=True) if what == "read" else Kind(VOLATILE_WRITE)
    if what == "read":
        return Kind(BLOCK_READ if narrow else STRONG_READ, releases, by_hand=True)
    return Kind(BLOCK_WRITE if narrow else STRONG_WRITE, releases, by_hand=bool(mods & {"cas", "exch"}))


def verb(instr: Instr, name: str, several: bool = False) -> str:
    """The predicate of a sentence about an access of kind ``name``, by one thread or by several."""
    s = "" if several else "s"
    if effects_of(instr, INSTRUCTIONS).memory == "atomic":
        return f"update{s} atomically"
    return f"read{s}" if name in (READ, STRONG_READ, BLOCK_READ, VOLATILE_READ) else f"write{s}"


class ByThread:
    """Of each cell when whoever touched it did, in the moments of ``engine.knowledge``: of one thread that
    moment, of several one for each thread of the block. 0: before anything was known.
    """

    def __init__(self, cells: int, threads: int):
        self.moment = np.zeros(cells, np.int32)
        self.row = np.zeros(cells, np.int32)  # in the table below, 0: none
        self.table = np.zeros((1, threads), np.int32)
        self.rows = 1

    def known(self, lane: np.ndarray, cell: np.ndarray, request) -> np.ndarray:
        """Whether the lanes of a request know all that was done to their cells, by ``lane`` or SEVERAL."""
        out = (lane >= 0) & (request.known.moments(request.thread[lane]) > self.moment[cell])
        several = np.flatnonzero(lane == SEVERAL)
        for start in range(0, several.size, PIECE):
            mine = several[start : start + PIECE]
            row = self.row[cell[mine]]
            touched, knows = self.table[row], request.known.all_moments(mine)
            after = (touched == 0) | (touched < knows)
            after[np.arange(mine.size), request.thread[request.lanes[mine]]] = True
            # those who came before anything was known are nobody's row: then any order will do
            out[mine] = after.all(axis=1) & ((row > 0) | knows.any(axis=1))
        return out

    def add(self, lane, several: np.ndarray, cell: np.ndarray, request, ordered: np.ndarray) -> None:
        """Put in the request's lanes, with ``lane`` and others before them where they are now ``several``."""
        before = self.moment[cell]
        self.table[self.row[cell[ordered]]] = 0
        self.moment[cell] = request.known.now
        if not several.any():
            return
        cell, thread = cell[several], request.thread[request.lanes[several]]
        new = np.unique(cell[self.row[cell] == 0])
        if self.rows + new.size > len(self.table):
            more = np.zeros((len(self.table) + new.size, self.table.shape[1]), np.int32)
            self.table = np.concatenate([self.table, more])
        self.row[new] = self.rows + np.arange(new.size)
        self.rows += new.size
        alone = (lane[several] >= 0) & ~ordered[several]
        self.table[self.row[cell[alone]], request.thread[lane[several][alone]]] = before[several][alone]
        self.table[self.row[cell], thread] = request.known.now
