"""What the machine tells whoever watches it: counters and checks override the events that they need."""

from __future__ import annotations


class Observer:
    """Every event gets the machine. A group is a set of lanes at one place;
    ``block`` is a basic block of the program.

    ``accessed``: ``what`` is "read", "write" (with its ``values``, before they are stored) or "atomic";
    ``offset`` and ``width`` are bytes. ``missed``: lanes shuffle the value of one that takes no part.
    ``fence``: ``wide`` if it reaches other thread blocks. ``done``: a chunk of thread blocks has ended.
    """

    def executed(self, machine, group, block): ...

    def branched(self, machine, group, block, guard, uniform): ...

    def accessed(self, machine, group, site, access, offset, width, space, what, values): ...

    def missed(self, machine, group, site): ...

    def barrier(self, machine, block): ...

    def warp_barrier(self, machine, group): ...

    def fence(self, machine, group, wide): ...
    def met(self, machine, lanes, together): ...


    def done(self, machine): ...
