"""The kinds of accesses, and which of them clash.

Two accesses by different threads to the same bytes *clash* if one of them writes and not both are strong.
*Strong* accesses are atomics, and loads and stores with ``.relaxed``, ``.acquire``, ``.release`` or
``.volatile``, which the hardware orders. Two strong accesses clash if they are in different blocks and one
has the scope ``.cta`` (``atomicAdd_block``). In shared memory a volatile access is strong only in a kernel
with a fence, and only towards other warps: without a fence, volatile accesses are the old warp-synchronous
style without ``syncwarp``, which is a race.

A plain load whose value is then expected by a compare-and-swap counts as strong, because a wrong value only
makes the loop try again. numba makes such loops for atomics that the hardware does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr

READ, WRITE, STRONG_READ, STRONG_WRITE = "read", "write", "strong read", "strong write"
BLOCK_READ, BLOCK_WRITE = "read in its block", "write in its block"  # strong, of scope .cta
VOLATILE_READ, VOLATILE_WRITE = "volatile read", "volatile write"  # strong for other warps
VOLATILES = VOLATILE_READ, VOLATILE_WRITE
STRONG_READS = STRONG_READ, BLOCK_READ, VOLATILE_READ
STRONG_KINDS = *STRONG_READS, STRONG_WRITE, BLOCK_WRITE, VOLATILE_WRITE
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


@dataclass(frozen=True)
class Kind:
    """The kind of an access: ``name`` is a key of ``CLASHES``; ``releases`` is the scope of its release
    semantics, "cta", "wide" (beyond the block), or "" if it has none.
    """

    name: str
    releases: str = ""

    @property
    def strong(self) -> bool:
        return self.name in STRONG_KINDS


def kind_of(program, site: int, what: str, space: str) -> Kind:
    """The kind of an access; ``what`` is "read", "write" or "atomic", as in ``Observer.accessed``."""
    instr = program.sites[site]
    if id(instr) in program.guesses:
        return Kind(STRONG_READ)
    mods = set(instr.mods)
    if what == "atomic" or mods & STRONG or effects_of(instr, INSTRUCTIONS).memory == "atomic":
        releases = "" if not mods & RELEASE else "cta" if "cta" in mods else "wide"
        in_block = space != "shared" and "cta" in mods
        if what == "read":
            return Kind(BLOCK_READ if in_block else STRONG_READ, releases)
        return Kind(BLOCK_WRITE if in_block else STRONG_WRITE, releases)
    if "volatile" not in mods or (space != "global" and not program.fences):
        return Kind(what)
    if space != "global":
        return Kind(VOLATILE_READ if what == "read" else VOLATILE_WRITE)
    return Kind(STRONG_READ if what == "read" else STRONG_WRITE)


def verb(instr: Instr, name: str, several: bool = False) -> str:
    """The predicate of a sentence about an access of kind ``name``, by one thread or by several."""
    s = "" if several else "s"
    if effects_of(instr, INSTRUCTIONS).memory == "atomic":
        return f"update{s} atomically"
    return f"read{s}" if name == READ or name in STRONG_READS else f"write{s}"
