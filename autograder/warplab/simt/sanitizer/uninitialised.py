"""Reads of shared or local memory that no thread has written:
on a GPU they give whatever was there before.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.errors import UninitialisedRead
from warplab.simt.observer import Observer
from warplab.simt.sanitizer.races import cell_size


class InitialisationCheck(Observer):
    """Observer that raises UninitialisedRead at the first read of a cell nobody wrote in this launch."""

    def __init__(self):
        self.written: dict[str, np.ndarray] = {}
        self.unit = 4

    def done(self, machine):
        self.written = {}

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space not in ("shared", "local"):
            return
        if space not in self.written:
            self.unit = cell_size(machine.program)
            size = (machine.shared if space == "shared" else machine.local).size
            self.written[space] = np.zeros(size // self.unit + 1, bool)
        written = self.written[space]
        if what != "write":
            key = (
                "written",
                offset,
                width,
            )  # what was written stays so: a loop's next read need not be looked up
            if key not in access.pattern:
                for part in range(max(1, width // self.unit)):
                    known = written[(access.offset + offset) // self.unit + part]
                    if not known.all():
                        self._raise(machine, group, site, access, offset, space, known)
                access.pattern[key] = True
        if what != "read":
            for part in range(max(1, width // self.unit)):
                written[(access.offset + offset) // self.unit + part] = True

    def _raise(self, machine, group, site, access, offset, space, known):
        i = int(np.flatnonzero(~known)[0])
        lane = int(group.lanes[i])
        at = int(access.within[min(i, access.within.size - 1)]) + offset
        owner = "no thread of its block has" if space == "shared" else "it has not"
        raise UninitialisedRead(
            f"{machine.thread_name(lane)} reads {space} memory at byte offset {at}, which {owner} written",
            kernel=machine.program.name,
            where=machine.program.line_of_site(site),
            hint="set the array's elements first, and for shared memory put cuda.syncthreads() after that",
        )
