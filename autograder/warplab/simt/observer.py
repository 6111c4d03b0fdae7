"""What the machine tells whoever watches it: counters and checks override the events that they need."""

from __future__ import annotations


class Observer:
    """Every event gets the machine. A group is a set of lanes at one place;
    ``block`` is a basic block of the program.

    ``accessed``: ``what`` is "read", "write" (with its ``values``, before they are stored) or "atomic";
    ``offset`` and ``width`` are bytes; of a read of uninitialised memory an observer may answer with the
    arguments of ``taint.loaded``. ``read_until_now``: of whose start ``accessed`` has told, a read of shared
    memory by an asynchronous instruction ends. ``missed``: a shuffle reads lanes that take no part, by
    ``warp.shuffle``'s ``missing``; the answer is what lanes ``got``.
    ``bulk``: a part of a copy that TMA makes, whose group has a lane for each word or 16 bytes; by default an
    access like others.
    ``printed``: a lane prints what ``taken`` names from a generic address on: (byte, bytes) each.
    ``barrier``: all threads pass one. ``met``: some do; ``lanes`` with one number in ``together`` have met.
    ``fence``: ``wide`` if it reaches other thread blocks. ``arrived``: lanes arrive in phases of mbarriers,
    each of which has a number, ``relaxed`` if only what they have fenced is ordered; ``waited``: they have
    waited for them. ``visited``: lanes reach other blocks of their cluster; ``left``: the last threads of
    ``blocks`` leave, told of kernels with clusters or asynchronous copies.
    ``done``: a chunk of thread blocks has ended.
    """

    def at_once(self, machine) -> int | None:
        """How many thread blocks shall run together, asked before the first; None: as the machine likes."""

    def executed(self, machine, group, block): ...

    def branched(self, machine, group, block, guard, uniform): ...

    def accessed(self, machine, group, site, access, offset, width, space, what, values): ...

    def bulk(self, machine, group, site, access, width, space, what, values):
        if group.size:
            self.accessed(machine, group, site, access, 0, width, space, what, values)

    def read_until_now(self, machine, group, site, access, width): ...

    def missed(self, machine, group, site, missing, got):
        return got

    def printed(self, machine, lane, site, address, taken): ...

    def barrier(self, machine, block): ...

    def met(self, machine, lanes, together): ...

    def warp_barrier(self, machine, group): ...

    def fence(self, machine, group, wide): ...

    def arrived(self, machine, lanes, phases, relaxed=False): ...

    def waited(self, machine, lanes, phases): ...

    def visited(self, machine, group, site, access, offset): ...

    def left(self, machine, blocks): ...

    def done(self, machine): ...
