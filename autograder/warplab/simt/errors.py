"""What can go wrong in a launch, said the way a student can act on it.

Every error names the kind, the kernel, the source line, the block and thread that did it, and what to look
at.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

Says = str | Callable[[int], str]  # what a thread does, or what to say of it by its place in its group
NOT_THEIRS = ("site-packages", "/warplab/", "/autograder/sandbox/", "/lib/python3", "<frozen ", "IPython")


@dataclass(frozen=True)
class Act:
    """What one thread did, for drawing it.

    ``does``: "reads", "writes", "updates atomically" or "waits"; ``what``: an element such as ``tile[3,
    16]``.
    """

    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    does: str
    what: str
    file: str
    line: int


def led_here(error: BaseException) -> list[str]:
    """The lines of a notebook or a script of the reader's that led to an error, the outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(part in f.filename for part in NOT_THEIRS)]
    return [f"line {frame.lineno}: {frame.line}" for frame in own if frame.line]


class LaunchError(RuntimeError):
    """A kernel launch was refused or stopped. ``str(error)`` is the text for the student.

    ``acts``: what the one or two threads did that it names, in order of time.
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
        """What IPython shows: the lines of the notebook that led here, and the text; nothing of ours."""
        return [*led_here(self), f"{type(self).__name__}: {self}"]


class OutOfTime(BaseException):
    """Raised into a computation that has taken too long. where: " in kernel k, cell:4", which the
    engine notes where it is stopped; "" elsewhere.
    """

    where = ""


class InvalidLaunch(LaunchError):
    """The launch configuration or an argument is one that CUDA refuses too."""

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
    """A thread used shared or local memory that was never written, or a lane's value that is not there."""

    kind = "uninitialised read"


class SharedRace(LaunchError):
    """Two threads of a block touched the same shared word, one wrote, and no barrier stood between."""

    kind = "shared-memory race"


class BarrierDivergence(LaunchError):
    """Threads of one block wait at different barriers."""

    kind = "barrier divergence"


class BarrierWarning(UserWarning):
    """A barrier that PTX lets pass and CUDA C++ does not promise: some threads of the block left the kernel
    before it, or wait at another place. Or a vote, a match, a reduction or a shuffle of a warp whose mask
    names a lane that did not come to it, and had not left.
    """


class BarrierMisuse(LaunchError):
    """An mbarrier is used as the PTX manual does not allow: uninitialised, twice, by too many, as data."""

    kind = "misuse of an mbarrier"


class ClusterMisuse(LaunchError):
    """A block of a cluster reaches for another that may not be there, or comes to the barrier out of turn."""

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
    """A thread read what an asynchronous copy was still to bring."""

    kind = "unfinished asynchronous copy"


class WarpgroupMisuse(LaunchError):
    """Registers or operands of a product of a warp group (wgmma) are used without its wait or its fence."""

    kind = "misuse of a warp group's product"


class WarpWide(LaunchError):
    """An instruction of a whole warp met less than a warp, or lanes that disagree about its operands."""

    kind = "warp-wide instruction"
