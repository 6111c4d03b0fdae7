"""The errors of a launch, worded for a student.

Each names its kind, the kernel, the source line, the block and thread that caused it, and what to look at.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

Wording = str | Callable[[int], str]  # about a thread, or a function of the thread's index in its group
NOT_READERS = ("site-packages", "/warplab/", "/autograder/sandbox/", "/lib/python3", "<frozen ", "IPython")


@dataclass(frozen=True)
class Act:
    """What one thread did, for drawing it.

    ``does`` is "reads", "writes", "updates atomically" or "waits"; ``what`` is an element, such as
    ``tile[3, 16]``.
    """

    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    does: str
    what: str
    file: str
    line: int


def reader_lines(error: BaseException) -> list[str]:
    """The lines of the reader's own notebook or script that led to an error, the outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(part in f.filename for part in NOT_READERS)]
    return [f"line {frame.lineno}: {frame.line}" for frame in own if frame.line]


class LaunchError(RuntimeError):
    """A kernel launch was refused or stopped. ``str(error)`` is the text for the student.

    ``acts``: what each thread named in it did (one or two threads), in order of time.
    """

    kind = "launch error"

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        where: str = "",
        hint: str = "",
        acts: tuple[Act, ...] = (),
    ):
        self.kernel, self.where, self.hint, self.acts = kernel, where, hint, acts
        head = f"{self.kind}"
        if kernel:
            head += f" in kernel {kernel}"
        if where:
            head += f", {where}"
        text = f"{head}: {message}"
        super().__init__(text + (f"\n  Look at: {hint}" if hint else ""))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the notebook's lines that led here, and the text; no frame of this package."""
        return [*reader_lines(self), f"{type(self).__name__}: {self}"]


class OutOfTime(BaseException):
    """Raised into a computation that has taken too long.

    ``where`` is set by the engine if it was running, for example to " in kernel k, cell:4"; else it is "".
    """

    where = ""


class InvalidLaunch(LaunchError):
    """CUDA too would refuse the launch configuration or an argument."""

    kind = "invalid launch"


class UnsupportedInstruction(LaunchError):
    """The kernel uses a PTX instruction that the engine does not execute."""

    kind = "unsupported instruction"


class MemoryError_(LaunchError):
    """Base of the memory errors; ``address`` is the virtual address in bytes."""


class OutOfBounds(MemoryError_):
    """A thread read or wrote outside the array that it addressed."""

    kind = "out-of-bounds access"


class UseAfterFree(OutOfBounds):
    """A thread read or wrote an array that the host has freed."""

    kind = "use after free"


class MisalignedAccess(MemoryError_):
    """An address is not a multiple of the access width, which a GPU faults on."""

    kind = "misaligned access"


class UninitialisedRead(MemoryError_):
    """A thread used shared or local memory that was never written, or what a shuffle got from an absent
    lane.
    """

    kind = "uninitialised read"


class SharedRace(LaunchError):
    """Two threads of a block touched the same shared word, one wrote, and no barrier stood between."""

    kind = "shared-memory race"


class BarrierDivergence(LaunchError):
    """Threads of one block wait at different barriers."""

    kind = "barrier divergence"


class BarrierWarning(UserWarning):
    """A barrier that works in PTX but that CUDA C++ leaves undefined: some threads of the block left the
    kernel before it, or wait at another place. Or a vote, match, reduction or shuffle whose member mask names
    a lane that has not left the kernel and did not reach it.
    """


class BarrierMisuse(LaunchError):
    """An mbarrier is used against the PTX manual: before its initialisation, initialised twice, with more
    arrivals than it expects, or read and written as data.
    """

    kind = "misuse of an mbarrier"


class ClusterMisuse(LaunchError):
    """A block accesses shared memory of another block of its cluster that may not have begun or may have
    ended; or a thread arrives and waits at the cluster's barrier in the wrong order.
    """

    kind = "misuse of a cluster"


class NoProgress(LaunchError):
    """The step budget ran out: an endless loop, or threads that wait for each other."""

    kind = "no progress"


class KernelAssertion(LaunchError):
    """An ``assert`` in the kernel failed."""

    kind = "assertion failed"


class StackOverflow(LaunchError):
    """A recursive function calls itself too often before it returns."""

    kind = "stack overflow"


class UnfinishedCopy(LaunchError):
    """A thread read memory that an asynchronous copy had yet to write."""

    kind = "unfinished asynchronous copy"


class WarpgroupMisuse(LaunchError):
    """Registers or operands of a ``wgmma`` are used without the wait or the fence that it needs."""

    kind = "misuse of a warp group's product"


class WarpWide(LaunchError):
    """A warp-wide instruction was executed by part of a warp, or its lanes disagree about its operands."""

    kind = "warp-wide instruction"
