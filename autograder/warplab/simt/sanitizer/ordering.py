"""What a race is: two accesses that clash, and nothing that puts one before the other.

Two accesses by different threads to the same bytes *clash* if one of them writes and not both are strong.
*Strong* accesses are made to be met by other threads: atomics, and loads and stores with ``.relaxed``,
``.acquire``, ``.release`` or ``.volatile``; the hardware gives them some order, so two of them never clash.
An atomic is a strong write, and a plain load or store of its word clashes with it like with any write.

A clash is a race unless one access *happens before* the other (PTX ISA, "Memory consistency model"): by the
order of statements in one thread; by a barrier of their block or of the grid, or a ``syncwarp`` of their
warp, that both passed, the one after its access and the other before; or by release and acquire. The last is
a fence of the writer's, with its strong write behind it or as a release of its own, which a strong access of
the reader observes. What is a chain of such steps is one too: whoever passes a barrier takes along what the
others did before it.

The order by threads, barriers and ``syncwarp`` is decided exactly. Of release and acquire it is only asked
whether a fence and a later strong access are there, not whether the one observed the other (which flag, which
lock, which value), and for a whole warp or block at once; a barrier or ``syncwarp`` of some counts for all.
Both err towards silence. A plain store by threads that have fenced counts as strong where it meets strong
loads, a compare-and-swap or an exchange: so locks are opened and flags set by hand. And a plain load of what
a compare-and-swap then expects to find counts as strong, for a wrong guess costs it another turn: so atomics
that the hardware has not are made of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr

READ, WRITE, STRONG_READ, STRONG_WRITE = "read", "write", "strong read", "strong write"
CLASHES = {
    READ: (WRITE, STRONG_WRITE),
    WRITE: (WRITE, READ, STRONG_READ, STRONG_WRITE),
    STRONG_READ: (WRITE,),
    STRONG_WRITE: (WRITE, READ),
}
STRONG = {"relaxed", "acquire", "release", "acq_rel", "mmio"}
RELEASE = {"release", "acq_rel"}
WIDE = {"gl", "gpu", "sys", "cluster"}  # scopes of fences that reach other blocks


@dataclass(frozen=True)
class Kind:
    """What an instruction's accesses are to the other threads.

    ``name`` is one of the four above. ``releases`` is the scope of the fence that it brings along: "cta",
    "wide", or "" without one. ``by_hand``: it looks at a flag or a lock, which a plain store behind a fence
    may set.
    """

    name: str
    releases: str = ""
    by_hand: bool = False

    @property
    def strong(self) -> bool:
        return self.name in (STRONG_READ, STRONG_WRITE)


def kind_of(
    instr: Instr, what: str, volatile_is_strong: bool = True, guesses: Collection[int] = frozenset()
) -> Kind:
    """The kind of an access, ``what`` as observers are told: "read", "write" or "atomic".

    guesses: the ids of loads of what a compare-and-swap expects (``Program.guesses``).
    """
    if id(instr) in guesses:
        return Kind(STRONG_READ)
    mods = set(instr.mods)
    atomic = what == "atomic" or effects_of(instr, INSTRUCTIONS).memory == "atomic"
    if not (atomic or mods & STRONG or (volatile_is_strong and "volatile" in mods)):
        return Kind(what)
    releases = "" if not mods & RELEASE else "cta" if "cta" in mods else "wide"
    if what == "read":
        return Kind(STRONG_READ, releases, by_hand=True)
    return Kind(STRONG_WRITE, releases, by_hand=bool(mods & {"cas", "exch"}))


def verb(instr: Instr, name: str, several: bool = False) -> str:
    """The predicate of a sentence about an access of kind ``name``, by one thread or by several."""
    s = "" if several else "s"
    if effects_of(instr, INSTRUCTIONS).memory == "atomic":
        return f"update{s} atomically"
    return f"read{s}" if name in (READ, STRONG_READ) else f"write{s}"
