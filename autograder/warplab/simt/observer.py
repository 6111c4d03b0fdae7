"""What the machine tells whoever watches it: counters and checks override the events that they need."""

from __future__ import annotations


class StartFollowing(Exception):
    """Raised by an observer in the midst of a load, before the load is done or others are told of it.

    ``known``: the local variables of the block's function at the load; the function itself adds them.
    """

    def __init__(self, shadow, site: int):
        self.shadow, self.site = shadow, site
        self.known: dict[str, object] = {}


class Observer:
    """Every event gets the machine. A group is a set of lanes at one place;
    ``block`` is a basic block of the program.

    ``accessed``: ``what`` is "read", "write" (with its ``values``, before they are stored) or "atomic";
    ``offset`` and ``width`` are bytes. ``missed``: a shuffle reads a lane that takes no part.
    ``printed``: a lane prints what ``taken`` names from a generic address on: (byte, bytes) each.
    ``barrier``: all threads pass one. ``met``: some do; ``lanes`` with one number in ``together`` have met.
    ``fence``: ``wide`` if it reaches other thread blocks. ``arrived``: lanes arrive in phases of mbarriers,
    each of which has a number; ``waited``: they have waited for them.
    ``done``: a chunk of thread blocks has ended.
    """

    def at_once(self, machine) -> int | None:
        """How many thread blocks shall run together, asked before the first; None: as the machine likes."""

    def executed(self, machine, group, block): ...

    def branched(self, machine, group, block, guard, uniform): ...

    def accessed(self, machine, group, site, access, offset, width, space, what, values): ...

    def missed(self, machine, group, site): ...

    def printed(self, machine, lane, site, address, taken): ...

    def barrier(self, machine, block): ...

    def met(self, machine, lanes, together): ...

    def warp_barrier(self, machine, group): ...

    def fence(self, machine, group, wide): ...

    def arrived(self, machine, lanes, phases): ...

    def waited(self, machine, lanes, phases): ...

    def done(self, machine): ...
