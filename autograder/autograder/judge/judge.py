"""From a validated notebook to points per grade cell."""

from __future__ import annotations

import functools
import math
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from autograder.judge.attempts import Cases, NotebookStep, run_all
from autograder.judge.faults import InternalError, blamed_on
from autograder.layout import Assignment, CellSpec, NotebookCell
from autograder.sandbox import Launcher, Limits
from autograder.user_error import UserError
from autograder.validate import Checked
from warplab import crossing
from warplab.crossing.costliest import quoted
from warplab.tasks import registry, scoring
from warplab.tasks.rubric import Case, Line, Points, Report, Text, one_of

TOLERANCE = 1e-6
# control characters, bidirectional controls, line separators and lone surrogates
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
Name = Annotated[str, Meta(max_length=100)]
LONGEST = 4_000  # characters of a sentence or a line of code that is stored
TIMED_SETS = 8  # sets of inputs that the samples of one timed case cycle through


@dataclass
class CellVerdict:
    """The verdict on one grade cell.

    points: float in [0, max]; None in the states "ungraded" (nothing here can measure it) and "manual" (a
    person grades it). lines: its rubric rows, each the attributes of a warplab.tasks.rubric.Line as a dict.
    """

    grade_id: Name
    points: Points | None
    max: Points
    state: Annotated[str, one_of("full", "partial", "lost", "ungraded", "manual", "unanswered")]
    task: Name | None = None
    rubric: Annotated[str, one_of("time")] | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)

    def as_changed(self, most: float, given: bool) -> CellVerdict:
        """This verdict after changes of the set: the same share of `most` points; all of them if `given`."""
        if given or not most:
            return replace(self, points=most, max=most, state="full")
        points = None if self.points is None else self.points * most / self.max
        return replace(self, points=points, max=most)


@dataclass
class Verdict:
    """The verdict on one submission. cells: {grade id: CellVerdict}. seconds: how long judging took.

    status: a submission with "timeout" or "crashed" is graded as far as its code came. cell_errors: {cell id:
    what the cell raised}.
    """

    status: Annotated[str, one_of("graded", "timeout", "crashed")]
    reason: Text
    cells: dict[str, CellVerdict]
    isolation: Text
    seconds: Points
    cell_errors: dict[str, Text] = field(default_factory=dict)

    def so_far(self, given: Mapping[str, float], penalty: float) -> tuple[float, float, float]:
        """(points earned, points that wait for a GPU, points that wait for a person).

        given: {grade id: points that a person gave}, which replace the judge's. penalty: off for lateness.
        """
        earned = math.fsum(given.get(key, cell.points) or 0.0 for key, cell in self.cells.items())
        waiting = [cell for key, cell in self.cells.items() if key not in given]
        ungraded, manual = (
            math.fsum(cell.max for cell in waiting if cell.state == state) for state in ("ungraded", "manual")
        )
        return round(max(0.0, earned - penalty), 2), ungraded, manual

    @property
    def points(self) -> dict[str, float | None]:
        """{grade id: points, or None}, as the gradebook takes them."""
        return {key: cell.points for key, cell in self.cells.items()}

    def as_changed(self, worth: Mapping[str, float], given: Collection[str]) -> Verdict:
        """This verdict after changes of the set. worth: {grade id: maximum}. given: cells with all points."""
        cells = {
            key: cell.as_changed(worth.get(key, cell.max), key in given) for key, cell in self.cells.items()
        }
        return replace(self, cells=cells)


def make_cases(assignment: Assignment, seed: int) -> Cases:
    """The cases of all tasks of a set for one seed.

    Timed cases are included only where there is a CUDA device; elsewhere their points stay ungraded.
    """
    cases: Cases = {}
    for name in assignment.tasks():
        task = registry.get(name)
        cases[name] = task.cases(seed)
        if crossing.can_time():
            timed = task.timed_cases(seed)
            others = [other for offset in range(1, TIMED_SETS) for other in task.timed_cases(seed + offset)]
            for case in timed:
                more = [like(case, other) for other in others if other.item == case.item]
                case.memo["sets"] = [case, *more]
            cases[name] += timed
    return cases


def like(case: Case, other: Case) -> Case:
    """`other` with the scalar inputs of `case`.

    The scalars are part of a compiled or recorded launch, so the sets of one case may differ only in arrays.
    """
    inputs = {
        key: value if isinstance(value, np.ndarray) else case.inputs[key]
        for key, value in other.inputs.items()
    }
    return replace(other, inputs=inputs, memo={})


def judge_notebook(
    assignment: Assignment, checked: Checked, cases: Cases, launcher: Launcher, limits: Limits | None = None
) -> Verdict:
    """Judge one notebook that was checked by autograder.judge.reading or autograder.validate.

    The student's code is not parsed in this process, only passed on to sandboxed ones.
    cases: from make_cases; the same for every submission of a run. limits: default Limits().
    Raises InternalError for a fault of a task, NotStarted when a process cannot be started here.
    """
    started = time.monotonic()
    notebook, steps = checked.notebook, steps_of(assignment, checked)
    run = run_all(steps, cases, launcher, limits or Limits())
    reports: dict[str, Report] = {}
    for task in map(registry.get, cases):
        with blamed_on(task):
            report = scoring.judge(task, cases[task.name], run.outcomes[task.name])
            reports[task.name] = quoted(report, functools.partial(_sources, steps, checked, task.entry))
    cells: dict[str, CellVerdict] = {}
    answers = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell
        for cell in notebook["cells"]
        if "nbgrader" in cell["metadata"]
    }
    for spec in assignment.graded():
        if spec.kind == "manual":
            cells[spec.grade_id] = _manual(spec, answers[spec.grade_id])
        else:
            cells[spec.grade_id] = _judged(spec, reports[_task_of(spec)])
    errors = {cell: legible(error) for cell, error in run.errors.items()}
    seconds = round(time.monotonic() - started, 2)
    return Verdict(run.status, legible(run.reason), cells, launcher.isolation, seconds, errors)


def steps_of(assignment: Assignment, checked: Checked) -> tuple[NotebookStep, ...]:
    """The student's code cells in notebook order, and each task at the place of its first test cell.

    The text of test cells never runs; the task's own cases are judged instead. Idle cells (reader.needed) are
    left out.
    """
    steps: list[NotebookStep] = []
    seen: set[str] = set()
    for cell in checked.notebook["cells"]:
        spec = assignment.cells.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
        if spec is not None and spec.kind == "grade":
            task = _task_of(spec)
            if task not in seen:
                seen.add(task)
                steps.append(NotebookStep(spec.grade_id, "task", task=task))
        elif cell["cell_type"] == "code" and cell["source"].strip() and cell["id"] not in checked.idle:
            steps.append(NotebookStep(spec.grade_id if spec else cell["id"], "cell", source=cell["source"]))
    last = max((number for number, step in enumerate(steps) if step.kind == "task"), default=-1)
    return tuple(steps[: last + 1])


def check_points(assignment: Assignment) -> None:
    """Raise UserError if a released test cell has other points than the rows of its task add up to."""
    for spec in assignment.cells.values():
        worth = registry.get(spec.task).points_for(spec.rubric) if spec.task else spec.points
        if abs(worth - spec.points) > TOLERANCE:
            raise UserError(
                f"{spec.task}: its rows are worth {worth:g} points, the released cell {spec.grade_id} "
                f"{spec.points:g}; run `autograder release {assignment.name}`: nothing was graded"
            )


def _sources(steps: Sequence[NotebookStep], checked: Checked, entry: str) -> dict[str, str]:
    """{file name under which a source was compiled: the source}, to quote lines in a report.

    CUDA C++ is compiled under its kernel's name, `entry`.
    """
    texts = {f"<cell {step.id}>": step.source for step in steps}
    return texts | {f"{entry}.cu": text for text in reversed(checked.cuda_cpp) if entry in text}


def _task_of(spec: CellSpec) -> str:
    """The name of the task that a test cell checks."""
    if spec.task is None:
        raise InternalError(f"the test cell {spec.grade_id} names no task; run `autograder release`")
    return spec.task


def _manual(spec: CellSpec, cell: NotebookCell) -> CellVerdict:
    """A written answer: the unchanged stub earns 0 at once, as in nbgrader; any other waits for a person."""
    if cell["source"].strip() in (spec.source.strip(), ""):
        return CellVerdict(spec.grade_id, 0.0, spec.points, "unanswered")
    return CellVerdict(spec.grade_id, None, spec.points, "manual")


def _judged(spec: CellSpec, report: Report) -> CellVerdict:
    part = report.part(spec.rubric)
    lines = [_checked(line) for line in part.lines]
    ungraded = any(line.state == "ungraded" for line in lines)
    points = None if ungraded else round(math.fsum(line.points for line in lines), 2)
    plain = [dict(vars(line)) for line in lines]
    state = _state(points, spec.points)
    return CellVerdict(spec.grade_id, points, spec.points, state, spec.task, spec.rubric, plain)


def _state(points: float | None, most: float) -> str:
    if points is None:
        return "ungraded"
    if points == most:
        return "full"
    return "partial" if points else "lost"


def _checked(line: Line) -> Line:
    """The line with its texts made legible. Raises InternalError unless its points are a float in [0, max].

    nbgrader would give full marks for NaN, -1 or a NumPy scalar.
    """
    if type(line.points) is not float or not math.isfinite(line.points) or not 0 <= line.points <= line.max:
        wanted = f"expected a float in [0, {line.max:g}]"
        raise InternalError(f"row {line.key!r} has {line.points!r} points of {line.max:g}; {wanted}")
    told = {name: _legible(getattr(line, name)) for name in ("reason", "access", "warnings", "drawings")}
    return replace(line, max=float(line.max), **told)


def _legible(data: Any) -> Any:
    """Plain data with each string in it made legible(); some come from a student's kernel."""
    if isinstance(data, str):
        return legible(data)
    if isinstance(data, dict):
        return {key: _legible(value) for key, value in data.items()}
    return type(data)(map(_legible, data)) if isinstance(data, list | tuple) else data


def legible(text: str) -> str:
    """Text from a student, cut to LONGEST, with each character of UNSHOWN replaced by "\ufffd"."""
    return UNSHOWN.sub("\ufffd", text if len(text) <= LONGEST else f"{text[:LONGEST]} ...")
