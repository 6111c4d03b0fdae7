"""Refuses uses of uninitialised values: shared or local memory that no thread has written in this launch, and
values that a shuffle gets from absent lanes. On a GPU they are whatever was there before.

Reading such a value is no error: kernels read beyond the edge of a tile, or from a lane whose value they do
not need, and discard it. So the value is tainted, lane by lane, through moves, arithmetic, selections,
exchanges within a warp, and shared and local memory. It is an error if a tainted value decides a branch or a
vote, is an address, feeds an atomic or a function, is printed, or is stored to global memory.

A result is tainted if an operand is, unless the other operand alone decides it (``and`` with zero, the other
side of a ``selp``). Warp-wide instructions that mix lanes taint the results of all lanes. The read itself is
the error if the load is not a plain one (``ldmatrix``, ``wmma.load``), if an atomic computes with the memory
(an exchange does not, so its result is tainted instead), and in a kernel with recursive functions.

Tracking costs nothing before the first such read: a tainted value is an array of a subclass
(``engine.taint``), which propagates itself through the generated code.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from warplab.simt.engine.generic_addresses import resolve
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.taint import Tainted, origins_of
from warplab.simt.engine.wrapped import plain
from warplab.simt.errors import UninitialisedRead
from warplab.simt.observer import Observer
from warplab.simt.ptx.blocks import registers_read
from warplab.simt.sanitizer.races import barrier_at, cell_size

# The origin of an uninitialised value in one int64: the site of its load, shared or local, the lane and the
# byte. 0: the value is initialised.
LANE_BITS = BYTE_BITS = 22
SITE_SHIFT, LOCAL_BIT = LANE_BITS + BYTE_BITS + 1, 1 << LANE_BITS + BYTE_BITS
DISCARDING = ("and", "or", "mul", "mad", "setp", "set", "lop3", "shf", "addc", "subc", "madc")


class InitialisationCheck(Observer):
    """Observer that raises UninitialisedRead at the first use of an uninitialised value."""

    def __init__(self):
        self.deciders: set[str] = set()  # registers whose values may have made a result untainted
        self.tracks = False  # whether an uninitialised value has been read
        self._forget()

    def _forget(self):
        self.written: dict[str, np.ndarray] = {}  # by state space: whether a cell holds an initialised value
        self.stored: dict[str, np.ndarray] = {}  # by state space: the origin of a cell's tainted value, or 0
        self.unit = 4

    def done(self, machine):
        self._forget()

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Mark written cells; at a read of uninitialised ones return the arguments of ``taint.loaded``.

        Raises UninitialisedRead if a tainted value is stored to global memory, or if the read is an error.
        """
        self.machine, held = machine, machine.memory.stored_origins
        if space == "cluster":
            space = "shared"  # of another block
        elif space not in ("shared", "local"):
            if held is not None:
                self.refuse(group, np.maximum.reduce(held), "stores it to global memory", self._instr(site))
            return None
        if space not in self.written:
            self.unit = cell_size(machine.program)
            size = (machine.shared if space == "shared" else machine.local).size
            self.written[space] = np.zeros(size // self.unit + 1, bool)
        written, origins = self.written[space], None
        if what != "write":
            # a written cell stays written: the access is not checked again, unless tainted values exist
            key = ("written", offset, width)
            if self.tracks or key not in access.pattern:
                parts = self._parts(access, offset, width)
                known = [written[cell] for cell in parts]
                if not all(k.all() for k in known):
                    origins = self._origins(group, site, access, offset, space, what, parts, known)
                elif not self.tracks:
                    access.pattern[key] = True
        if what != "read":
            parts = self._parts(access, offset, width)
            for i, cell in enumerate(parts):
                if held is None:
                    written[cell] = True
                    continue
                origin = held[i * len(held) // len(parts)]
                written[cell], self._stored(space)[cell] = origin == 0, origin
        return None if origins is None else (origins, self)

    def missed(self, machine, group, site, missing, got):
        if machine.program.routines:
            return got
        self.machine, self.tracks = machine, True
        fresh = np.where(missing > 0, (site + 1 << SITE_SHIFT) | group.lanes << BYTE_BITS | missing - 1, 0)
        return Tainted(plain(got), np.where(fresh, fresh, origins_of([got])), self)

    def printed(self, machine, lane, site, address, taken):
        """Raise UninitialisedRead if a printed argument, which printf reads in local memory, is tainted."""
        stored = self.stored.get("local")
        space, within = resolve(np.array([address], np.uint64))
        if stored is None or space != "local":
            return
        start = int(machine.local_base[lane]) + int(within[0])
        for at, width in taken:
            cells = slice((start + at) // self.unit, -(-(start + at + width) // self.unit))
            origin = int(np.where(self.written["local"][cells], 0, stored[cells]).max())
            if origin:
                place = machine.program.line_of_site(site)
                self.raise_for(origin, f"; {machine.thread_name(lane)} prints it ({place})")

    def _parts(self, access, offset: int, width: int) -> list[np.ndarray]:
        first = access.index(self.unit.bit_length() - 1, offset)
        return [first + part if part else first for part in range(max(1, width // self.unit))]

    def _origins(self, group, site, access, offset, space, what, parts, known) -> list[np.ndarray]:
        """The origins of each part of a read, one a lane, of which at least one is uninitialised."""
        program = self.machine.program
        at = np.broadcast_to(access.within + offset, group.lanes.shape)
        code = (site + 1 << SITE_SHIFT) | (LOCAL_BIT if space == "local" else 0)
        before, found = self.stored.get(space), []
        for i, (k, cell) in enumerate(zip(known, parts)):
            fresh = code | group.lanes << BYTE_BITS | at + i * self.unit
            origin = fresh if before is None else np.where(before[cell] > 0, before[cell], fresh)
            found.append(np.where(k, 0, origin))
        computes = what == "atomic" and "exch" not in program.sites[site].mods
        if computes or program.routines or site not in program.plain_sites:
            first = next(f for f in found if f.any())
            self.raise_for(int(first[np.flatnonzero(first)[0]]), "")
        self.tracks = True
        return found

    def _stored(self, space: str) -> np.ndarray:
        if space not in self.stored:
            self.stored[space] = np.zeros(self.written[space].size, np.int64)
        return self.stored[space]

    def discards(self) -> None:
        """Note the ``deciders`` of the running block, in which a tainted operand may not taint a result."""
        for instr in self.machine.running.instrs:
            if instr.opcode == "selp":
                self.deciders.add(instr.operands[3].name)
            elif instr.opcode in DISCARDING:
                self.deciders |= registers_read(instr, INSTRUCTIONS)

    def refuse(self, group, origins: np.ndarray, how: str, instr) -> None:
        """Raise UninitialisedRead for the first lane whose origin is not 0."""
        if origins.any():
            i = int(np.flatnonzero(origins)[0])
            user, place = self.machine.thread_name(group.lanes[i]), self.machine.program.place(instr)
            self.raise_for(int(origins[i]), f"; {user} {how} ({place})")

    def _instr(self, site: int):
        return self.machine.program.sites[site]

    def raise_for(self, origin: int, use: str) -> NoReturn:
        """Raise UninitialisedRead for the value with this ``origin``; ``use`` ends the sentence."""
        machine = self.machine
        at, lane = origin & (1 << BYTE_BITS) - 1, origin >> BYTE_BITS & (1 << LANE_BITS) - 1
        site, reader = (origin >> SITE_SHIFT) - 1, machine.thread_name(lane)
        instr = machine.program.sites[site]
        if instr.opcode == "shfl":
            raise machine.program.error(
                UninitialisedRead,
                site,
                f"{reader} takes the value of lane {at} of its warp, which has no part in this shuffle{use}",
                "the mask names all lanes that exchange, and each of them comes here: blocks of a "
                "multiple of 32 threads, or offsets and a width that stay within the lanes there are",
            )
        place, owner = "its local memory", "it has not"
        if not origin & LOCAL_BIT:
            place, owner = machine.program.shared_place(at, self.unit), "no thread of its block has"
        barrier = barrier_at(machine.program.line_of_site(site))
        raise machine.program.error(
            UninitialisedRead,
            site,
            f"{reader} reads {place}, which {owner} written{use}",
            f"set the array's elements first, and for shared memory put {barrier} after that",
            (machine.act(lane, instr, "reads", place),),
        )
