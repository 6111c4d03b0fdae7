"""The events of a launch: counters and checks are observers that override those that they need."""

from __future__ import annotations


class Observer:
    """Every event gets the machine. ``group`` is a set of lanes that execute one instruction together;
    ``block`` is a basic block of the program.

    ``accessed``: a load ("read" in ``what``), a store ("write", with its ``values``, told before they are
    stored) or an atomic ("atomic"); ``offset`` and ``width`` are bytes. At a read of uninitialised memory an
    observer may return the arguments of ``taint.loaded``.
    ``read_ended``: an asynchronous instruction has finished a read of shared memory, of which
    ``accessed`` told when it began.
    ``missed``: a shuffle reads from absent lanes (``missing``, as in ``warp.shuffle``); the observer returns
    the values that lanes get, which are ``got`` unless it taints them.
    ``bulk``: a part of a copy by TMA, with one lane of the group for each word or each 16 bytes; by default
    it is handled as ``accessed``.
    ``printed``: a lane prints the bytes (start, length) in ``taken``, relative to a generic address.
    ``barrier``: all threads of their blocks (or the grid) pass a barrier. ``met``: some threads do; lanes
    with the same number in ``together`` have met.
    ``fence``: ``wide`` if its scope reaches other thread blocks.
    ``arrived``: lanes arrive in the numbered ``phases`` of mbarriers; ``relaxed`` arrivals release only what
    a fence has released before. ``waited``: lanes have waited for those phases.
    ``visited``: lanes access shared memory of other blocks of their cluster. ``left``: the last threads of
    ``blocks`` leave; told only of kernels with clusters or asynchronous copies.
    ``done``: a chunk of thread blocks has ended.
    ``branched``: told only to observers that override ``executed``.
    ``blocks_at_once``: how many thread blocks should run together, asked before the first one runs of those
    observers that override it.
    """

    def blocks_at_once(self, machine) -> int: ...

    def executed(self, machine, group, block): ...

    def branched(self, machine, group, block, guard, uniform): ...

    def accessed(self, machine, group, site, access, offset, width, space, what, values): ...

    def bulk(self, machine, group, site, access, width, space, what, values):
        if group.size:
            self.accessed(machine, group, site, access, 0, width, space, what, values)

    def read_ended(self, machine, group, site, access, width): ...

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
