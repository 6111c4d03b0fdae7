"""What a submitted file says, found out by a process that it may break.

The judge takes in bytes and hands them on; JSON, schema and Python are the reader's, which has little time
and memory, the walls of every other process, and nothing to steal: no assignment, no seed, no other
submission.

A file that breaks into the reader can have it answer anything that has the right types and sizes. So nothing
that it answers is believed about anything but the student's own text: cell types, metadata, points, ids, and
the text of tests are put there from the judge's copy of the released set (autograder.validate.restore), of
the cells that it calls idle only given and unchanged ones are left out, and its C++ is shown to this student
alone. What such a file can get is what an ordinary one that holds the same cells gets: at most it changes its
own submission.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
import numpy as np

from autograder.judge.budget import Budget, Lost, UsedUp
from autograder.judge.judge import steps_of
from autograder.judge.process import NotStarted, Process
from autograder.layout import Assignment
from autograder.reader.contents import MAX_CELLS, MAX_SOURCE, MAX_TEXT, HandedInCell, shown
from autograder.sandbox.forked import Launcher
from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import Contents, Examine, Examined, Read, Unreadable
from autograder.validate import Checked, Defect, Malformed, checked

LIMITS = Limits(
    step_seconds=60,  # by the clock, on a machine that has other things to do: processor time is what counts
    total_seconds=130,
    processor_seconds=15,
    memory_mib=1536,  # twenty MiB of JSON take 1,000 at most, the warm parent's libraries count as well
    file_mib=1,
    disk_mib=8,
    processes=8,
    open_files=64,
    message_mib=64,
    messages=64,
)
Cells = Annotated[list[HandedInCell], msgspec.Meta(max_length=MAX_CELLS)]


def reader(launcher: Launcher) -> Process:
    """A process for one submitted file. Raises NotStarted where none can be started here."""
    return Process(launcher, "reader", Budget(LIMITS))


def read_submission(data: bytes, assignment: Assignment, process: Process) -> Checked:
    """The notebook in a submitted file's bytes, checked against the assignment.

    process: a reader(), of no use afterwards; it ends while others begin, and is closed by the caller.
    Raises Malformed with all fatal defects, which is also what a file gets that cannot be read within
    LIMITS, and NotStarted where the process does not come up or gets no processor.
    """
    try:
        found = checked(_cells(process, data), assignment)
        given = assignment.given()
        own = [step for step in steps_of(assignment, found) if step.kind == "cell"]
        cells = [(step.id, step.source, step.source.strip() in given) for step in own]
        return _examined(process, found, cells)
    finally:
        process.let_go()


def _examined(process: Process, found: Checked, cells: Sequence[tuple[str, str, bool]]) -> Checked:
    """With what the reader knows of these cells. If it is lost over them, all of them run, behind walls."""
    try:
        process.begin_step(LIMITS.step_seconds)
        answer = process.ask(Examine(list(cells)), (Examined,))
    except Lost as lost:
        _of_the_file(lost)
        return found
    may_idle = {identity for identity, _, given in cells if given}
    fits = sum(map(len, answer.cuda_cpp)) <= MAX_SOURCE
    idle = frozenset(answer.idle) & may_idle
    return replace(found, idle=idle, cuda_cpp=tuple(answer.cuda_cpp) if fits else ())


def _of_the_file(lost: Lost) -> None:
    """Raises NotStarted if it was the machine that took so long: its time by the clock, and not its own."""
    if lost.kind == "timeout" and not isinstance(lost, UsedUp):
        raise NotStarted(
            f"reading the notebook took {LIMITS.step_seconds:g} s by the clock and less than "
            f"{LIMITS.processor_seconds:g} s of the processor: the machine has too much else to do; "
            "grade again"
        ) from None


def _cells(process: Process, data: bytes) -> list[HandedInCell]:
    """The cells of a file, as the reader tells them. Raises Malformed."""
    try:
        process.begin_step(LIMITS.step_seconds)
        answer = process.ask(Read(np.frombuffer(data, np.uint8)), (Contents, Unreadable))
        if isinstance(answer, Contents):
            cells = msgspec.convert(answer.cells, Cells)
            if sum(len(cell["source"]) for cell in cells) <= MAX_TEXT:
                return cells
            raise msgspec.ValidationError("more text than a notebook may hold")
    except Lost as lost:
        _of_the_file(lost)
        used_up = f"it takes more than {LIMITS.processor_seconds:g} s of processor time"
        how = used_up if isinstance(lost, UsedUp) else str(lost)
        text = f"the notebook cannot be read: {how}; clear all outputs and save it again"
        raise Malformed([Defect("too-costly", text)]) from None
    except msgspec.ValidationError:
        raise Malformed([Defect("not-notebook", "reading the notebook gives what is no notebook")]) from None
    raise Malformed([Defect(shown(answer.code, 40), shown(answer.text, 400))])
