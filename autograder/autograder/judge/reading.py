"""Reads a submitted file in a sandboxed process, the reader, so that no hostile file is parsed by the judge.

The judge only passes on the file's bytes. The reader parses JSON, schema and Python; it has little time and
memory, the same sandbox as every other process, and no secrets: no assignment, no seed, no other submission.

A file that takes over the reader can make it answer anything of the right types and sizes. So only the text
of the student's own cells is taken from its answers. Cell types, metadata, points, ids and the text of tests
come from the judge's copy of the released set (autograder.validate.restore); of the cells that it calls idle
only given, unchanged ones are skipped; and the C++ that it finds is shown to this student only. Such a file
can therefore get nothing that an ordinary file with the same cells would not get.
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
    step_seconds=60,  # wall-clock time, generous for a busy machine: the real limit is processor_seconds
    total_seconds=130,
    processor_seconds=15,
    memory_mib=1536,  # 20 MiB of JSON take at most 1,000, and the warm parent's libraries count as well
    file_mib=1,
    disk_mib=8,
    processes=8,
    open_files=64,
    message_mib=64,
    messages=64,
)
Cells = Annotated[list[HandedInCell], msgspec.Meta(max_length=MAX_CELLS)]


def reader(launcher: Launcher) -> Process:
    """Start a reader process for one submitted file. Raises NotStarted where none can be started here."""
    return Process(launcher, "reader", Budget(LIMITS))


def read_submission(data: bytes, assignment: Assignment, process: Process) -> Checked:
    """The notebook in a submitted file's bytes, checked against the assignment.

    process: a reader(), which cannot be used again; it is being killed on return, and the caller closes it.
    Raises Malformed with all fatal defects, also for a file that cannot be read within LIMITS, and NotStarted
    where the process does not start or gets too little processor time.
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
    """`found` with the reader's list of idle cells and C++. If the reader is lost, no cell counts as idle.

    cells: (id, source, whether it is given and unchanged) of the code cells.
    """
    try:
        process.begin_step(LIMITS.step_seconds)
        answer = process.ask(Examine(list(cells)), (Examined,))
    except Lost as lost:
        _blame_machine(lost)
        return found
    may_idle = {identity for identity, _, given in cells if given}
    fits = sum(map(len, answer.cuda_cpp)) <= MAX_SOURCE
    idle = frozenset(answer.idle) & may_idle
    return replace(found, idle=idle, cuda_cpp=tuple(answer.cuda_cpp) if fits else ())


def _blame_machine(lost: Lost) -> None:
    """Raise NotStarted if the wall-clock limit was hit while processor time was left: the machine is busy."""
    if lost.kind == "timeout" and not isinstance(lost, UsedUp):
        raise NotStarted(
            f"reading the notebook took {LIMITS.step_seconds:g} s by the clock and less than "
            f"{LIMITS.processor_seconds:g} s of the processor: the machine has too much else to do; "
            "grade again"
        ) from None


def _cells(process: Process, data: bytes) -> list[HandedInCell]:
    """Have the reader parse a file into cells. Raises Malformed."""
    try:
        process.begin_step(LIMITS.step_seconds)
        answer = process.ask(Read(np.frombuffer(data, np.uint8)), (Contents, Unreadable))
        if isinstance(answer, Contents):
            cells = msgspec.convert(answer.cells, Cells)
            if sum(len(cell["source"]) for cell in cells) <= MAX_TEXT:
                return cells
            raise msgspec.ValidationError("more text than a notebook may hold")
    except Lost as lost:
        _blame_machine(lost)
        used_up = f"it takes more than {LIMITS.processor_seconds:g} s of processor time"
        how = used_up if isinstance(lost, UsedUp) else str(lost)
        text = f"the notebook cannot be read: {how}; clear all outputs and save it again"
        raise Malformed([Defect("too-costly", text)]) from None
    except msgspec.ValidationError:
        raise Malformed([Defect("not-notebook", "the file has no valid cells; save it again")]) from None
    raise Malformed([Defect(shown(answer.code, 40), shown(answer.text, 400))])
