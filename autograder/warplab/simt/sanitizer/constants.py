"""Warns of reads of ``__constant__`` variables without an initialiser that the host has not set."""

from __future__ import annotations

from warplab.simt.observer import Observer


class UnsetConstant(UserWarning):
    """A kernel read a ``__constant__`` variable before the host had set it."""


class UnsetConstants(Observer):
    """Observer of such reads, for programs with unset constants. ``read``: of each variable the site of its
    first load.
    """

    def __init__(self):
        self.read: dict[str, int] = {}

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space == "global" and access.region.unset:
            self.read.setdefault(access.region.label.removeprefix("const variable "), site)

    def texts(self, program) -> list[tuple[str, str, int]]:
        """(warning, file, line) for each variable in ``read``."""
        found = []
        for name, site in self.read.items():
            instr = program.sites[site]
            text = (
                f"constant memory in kernel {program.name}, {program.place(instr)}: {name} is read, and the "
                "host has not set it; it holds zeros\n  Look at: kernel.symbol(...) sets a variable by its "
                "name, as cudaMemcpyToSymbol does; an initialiser gives it a value too, if that is not zero"
            )
            found.append((text, program.file_of(instr.file) or program.name, instr.line))
        return found
