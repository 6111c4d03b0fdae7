"""Uses of uninitialised values: shared or local memory that no thread has written in this launch, and
shuffles from lanes that take no part. On a GPU they give whatever was there before.

Reading such a value is no error: kernels read a tile beyond its edge, or a lane that the last ``shfl`` does
not need, and discard what they found. So the value is tracked (taint), lane by lane, through moves,
arithmetic, choices, exchanges within a warp, and shared and local memory. It is an error where it decides a
branch or a vote, is an address, feeds an atomic or a function, is printed, or is stored to global memory.

A result is tainted if an operand is, unless the other operand alone decides it (``and`` with zero, the other
side of a ``selp``). Instructions of a whole warp that mix its lanes taint the results of all of them. The
read itself is the error where the load is not a plain one (``ldmatrix``, ``wmma.load``), where an atomic
computes with the memory (an exchange does not, and its result is tracked), and in a kernel that calls itself.

Tracking costs nothing before the first such read (``engine.following``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warplab.simt.engine.generic_addresses import resolve
from warplab.simt.engine.warp import shuffle
from warplab.simt.errors import UninitialisedRead
from warplab.simt.observer import Observer, StartFollowing
from warplab.simt.sanitizer.races import barrier_at, cell_size

# The origin of an uninitialised value in one int64: the site of its load, the memory, the lane and the byte;
# 0: the value is initialised.
LANE_BITS = BYTE_BITS = 22
SITE_SHIFT, LOCAL_BIT = LANE_BITS + BYTE_BITS + 1, 1 << LANE_BITS + BYTE_BITS


class InitialisationCheck(Observer):
    """Observer that raises UninitialisedRead at the first use of an uninitialised value.

    The public methods below ``accessed`` are what ``engine.following`` calls for each instruction.
    """

    def __init__(self):
        self.deciders: set[str] = set()  # registers that decided to discard uninitialised values
        self._forget()

    def _forget(self):
        self.written: dict[str, np.ndarray] = {}
        self.unit = 4
        self.machine: Any = None  # set while values are tracked
        self.unknown: dict[str, np.ndarray] = {}  # by register: the origin of its value, a lane each
        self.stored: dict[str, np.ndarray] = {}  # the same of cells, by memory
        self.loads: list[tuple[np.ndarray, list[np.ndarray]]] = []
        self.values: tuple[str | None, ...] = ()  # registers that a store is about to put into memory
        self.place = ""

    def done(self, machine):
        self._forget()

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if self.machine is not None and self.values and what == "write":
            self._store(group, site, access, offset, width, space)
            return
        if space not in ("shared", "local"):
            return
        if space not in self.written:
            self.unit = cell_size(machine.program)
            size = (machine.shared if space == "shared" else machine.local).size
            self.written[space] = np.zeros(size // self.unit + 1, bool)
        written = self.written[space]
        if what != "write":
            # what is written stays so: a loop's next read need not be looked up, unless values are tracked
            key = ("written", offset, width)
            if self.machine is not None or key not in access.pattern:
                parts = self._parts(access, offset, width)
                known = [written[cell] for cell in parts]
                if not all(k.all() for k in known):
                    self._read(machine, group, site, access, offset, space, what, parts, known)
                elif self.machine is None:
                    access.pattern[key] = True
        if what != "read":
            for cell in self._parts(access, offset, width):
                written[cell] = True

    def missed(self, machine, group, site):
        if self.machine is None and site in machine.followed.places and not machine.program.routines:
            self.machine = machine
            raise StartFollowing(self, site)

    def printed(self, machine, lane, site, address, taken):
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
                self._raise(machine, origin, f"; {machine.thread_name(lane)} prints it ({place})")

    def _parts(self, access, offset: int, width: int) -> list[np.ndarray]:
        first = access.index(self.unit.bit_length() - 1, offset)
        return [first + part if part else first for part in range(max(1, width // self.unit))]

    def _read(self, machine, group, site, access, offset, space, what, parts, known) -> None:
        """Some of the cells that a group reads are uninitialised."""
        at = np.broadcast_to(access.within + offset, group.lanes.shape)
        code = (site + 1 << SITE_SHIFT) | (LOCAL_BIT if space == "local" else 0)
        before, found = self.stored.get(space), []
        for i, (k, cell) in enumerate(zip(known, parts)):
            fresh = code | group.lanes << BYTE_BITS | at + i * self.unit
            origin = fresh if before is None else np.where(before[cell] > 0, before[cell], fresh)
            found.append(np.where(k, 0, origin))
        computes = what == "atomic" and "exch" not in machine.program.sites[site].mods
        if computes or machine.program.routines or site not in machine.followed.places:
            first = next(f for f in found if f.any())
            self._raise(machine, int(first[np.flatnonzero(first)[0]]), "")
        if self.machine is None:
            self.machine = machine
            raise StartFollowing(self, site)
        self.loads.append((group.lanes, found))

    def _store(self, group, site, access, offset, width, space) -> None:
        held = [self._held(group, (name,) if name else ()) for name in self.values]
        if space not in ("shared", "local"):
            for unknown in held:
                self._refuse(group, unknown, "stores it to global memory", self.place)
            return
        if space not in self.written:
            size = (self.machine.shared if space == "shared" else self.machine.local).size
            self.unit = cell_size(self.machine.program)
            self.written[space] = np.zeros(size // self.unit + 1, bool)
        parts = self._parts(access, offset, width)
        for i, cell in enumerate(parts):
            unknown = held[i * len(held) // len(parts)]
            if unknown is None:
                self.written[space][cell] = True
                continue
            if space not in self.stored:
                self.stored[space] = np.zeros(self.written[space].size, np.int64)
            self.written[space][cell] = unknown == 0
            self.stored[space][cell] = unknown

    def begin_load(self):
        self.loads = []

    def loaded(self, group, names):
        """``names``: the registers that a load has filled, None for one that it discards."""
        for i, name in enumerate(names):
            if name is None:
                continue
            self._put(group, name, None)
            for lanes, parts in self.loads:
                mine = parts[i * len(parts) // len(names) : max(1, (i + 1) * len(parts) // len(names))]
                self._at(name)[lanes] = np.maximum.reduce(mine)

    def begin_store(self, names, place: str):
        self.values, self.place = names, place

    def computed(self, group, written, read):
        """Each register in ``written`` is computed from all in ``read``."""
        self._put_all(group, written, self._held(group, read))

    def of_warp(self, group, written, read):
        """The same from all lanes of the warp."""
        unknown = self._held(group, read)
        if unknown is not None:
            unknown = np.maximum.reduceat(unknown, group.firsts)[group.row]
        self._put_all(group, written, unknown)

    def chosen(self, group, written, a, b, p, takes_a):
        decider = p
        a, b, p = (self._held(group, names) for names in (a, b, p))
        if a is not None or b is not None:
            self.deciders.update(decider)
            nothing = np.zeros(1, np.int64)
            chosen = np.where(takes_a, nothing if a is None else a, nothing if b is None else b)
            p = chosen if p is None else np.maximum(chosen, p)
        self._put_all(group, written, p)

    def masked(self, group, written, a, b, a_decides, b_decides):
        """Where an initialised ``a`` decides the result, ``b`` does not taint it, and the other way round."""
        deciders = {*a, *b}
        a, b = self._held(group, a), self._held(group, b)
        if a is not None or b is not None:
            self.deciders |= deciders
        left = a if a is None else np.where(b_decides if b is None else b_decides & (b == 0), 0, a)
        right = b if b is None else np.where(a_decides if a is None else a_decides & (a == 0), 0, b)
        self._put_all(group, written, _either(left, right))

    def shuffled(self, group, written, value, lanes, mode: str, b, c, mask, site: int):
        unknown, source = self._held(group, value), self._held(group, lanes)
        held = np.zeros(group.lanes.shape, np.int64) if unknown is None else unknown
        got, _, missing = shuffle(group.table, mode, held, b, c, mask)
        if missing is not None:
            fresh = (site + 1 << SITE_SHIFT) | group.lanes << BYTE_BITS | missing - 1
            unknown = np.where(missing > 0, fresh, got)
        elif unknown is not None:
            unknown = got
        self._put_all(group, written[:1], _either(unknown, source))
        self._put_all(group, written[1:], source)

    def matters(self, group, names, how: str, place: str):
        self._refuse(group, self._held(group, names), how, place)

    def _at(self, name: str) -> np.ndarray:
        if name not in self.unknown:
            self.unknown[name] = np.zeros(self.machine.lanes, np.int64)
        return self.unknown[name]

    def _held(self, group, names) -> np.ndarray | None:
        """The origins of what is uninitialised in registers, a lane each; None if nothing is."""
        out = None
        for name in names:
            if name in self.unknown:
                here = self.unknown[name] if group.full else self.unknown[name][group.lanes]
                out = _either(out, here if here.any() else None)
        return out

    def _put_all(self, group, names, unknown) -> None:
        for name in names:
            self._put(group, name, unknown)

    def _put(self, group, name: str, unknown) -> None:
        if unknown is not None:
            self._at(name)[group.lanes] = unknown
        elif name in self.unknown:
            self.unknown[name][group.lanes] = 0

    def _refuse(self, group, unknown, how: str, place: str) -> None:
        if unknown is None or not unknown.any():
            return
        i = int(np.flatnonzero(unknown)[0])
        user = self.machine.thread_name(int(group.lanes[i]))
        self._raise(self.machine, int(unknown[i]), f"; {user} {how} ({place})")

    def _raise(self, machine, origin: int, use: str):
        at, lane = origin & (1 << BYTE_BITS) - 1, origin >> BYTE_BITS & (1 << LANE_BITS) - 1
        space = "local" if origin & LOCAL_BIT else "shared"
        owner = "no thread of its block has" if space == "shared" else "it has not"
        instr = machine.program.sites[(origin >> SITE_SHIFT) - 1]
        if instr.opcode == "shfl":
            raise UninitialisedRead(
                f"{machine.thread_name(lane)} takes the value of lane {at} of its warp, which has no part in "
                f"this shuffle{use}",
                kernel=machine.program.name,
                where=machine.program.line_of_site((origin >> SITE_SHIFT) - 1),
                hint="the mask names all lanes that exchange, and each of them comes here: blocks of a "
                "multiple of 32 threads, or offsets and a width that stay within the lanes there are",
            )
        place = "its local memory" if space == "local" else machine.program.shared_place(at, self.unit)
        where = machine.program.line_of_site((origin >> SITE_SHIFT) - 1)
        raise UninitialisedRead(
            f"{machine.thread_name(lane)} reads {place}, which {owner} written{use}",
            kernel=machine.program.name,
            where=where,
            hint=f"set the array's elements first, and for shared memory put {barrier_at(where)} after that",
            acts=(machine.act(lane, instr, "reads", place),),
        )


def _either(one, other):
    return other if one is None else one if other is None else np.maximum(one, other)
