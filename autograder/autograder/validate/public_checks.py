"""The points of a notebook's public checks, for a student's own machine or their repository's workflow.

The notebook runs in this process without a sandbox, so it must be the user's own. The points are those that
the notebook itself shows; the grader draws other inputs.
"""

import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment, CellSpec
from autograder.sandbox.messages import Cell
from autograder.sandbox.student import execute
from autograder.validate.validate import check_file
from warplab import check
from warplab.tasks import feedback
from warplab.tasks.rubric import Report, explained_by, number

Reports = dict[tuple[str, str | None], Report]


@dataclass(frozen=True)
class CheckedCell:
    """One graded cell. report: None where its check did not run, then why; a written answer has neither."""

    spec: CellSpec
    report: Report | None = None
    why: str = ""

    @property
    def points(self) -> float:
        return self.report.score if self.report else 0.0

    @property
    def open(self) -> float:
        """Points that cannot be given here: of timed rows without a GPU, and of written answers."""
        if self.spec.kind == "manual":
            return self.spec.points
        return self.report.ungraded if self.report else 0.0

    @property
    def complete(self) -> bool:
        return self.points + self.open >= self.spec.points

    def losses(self) -> list[str]:
        """A sentence for each row that lost points; rows that lost them to another row are joined in one."""
        if self.spec.kind == "manual":
            return ["a written answer, read by a person"]
        lost = [line for line in (self.report.lines if self.report else ()) if line.state != "full"]
        own = [line for line in lost if not explained_by(line.reason)]
        told = [": ".join(filter(None, (line.title, line.reason, *line.warnings))) for line in own]
        more = [line.title for line in lost if line not in own]
        return [
            *filter(None, [self.why]),
            *told,
            *([f"lost to that, too: {'; '.join(more)}"] if more else []),
        ]


def public_checks(file: Path, assignment: Assignment) -> list[CheckedCell]:
    """Run a notebook's cells in order, and each test cell's public checks. Raises Malformed."""
    cells = check_file(file, assignment).notebook["cells"]
    reports: Reports = {}

    def grade(name: str, submission: object, plan: object = None, rubric: str | None = None) -> float:
        reports[name, rubric] = feedback.report_on(name, submission, plan, rubric)
        return reports[name, rubric].score

    module = types.ModuleType("__main__")
    kept, check.grade = (check.grade, sys.modules["__main__"]), grade
    sys.modules["__main__"] = module
    errors: dict[str, str] = {}
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                error = execute(Cell(cell["id"], cell["source"]), module.__dict__)
                if error:
                    errors[cell["id"]] = error
    finally:
        check.grade, sys.modules["__main__"] = kept
    return [_checked_cell(spec, reports, errors, assignment) for spec in assignment.graded()]


def _checked_cell(
    spec: CellSpec, reports: Reports, errors: dict[str, str], assignment: Assignment
) -> CheckedCell:
    """The CheckedCell of a graded cell; without a report, why: first the error of the solution cell."""
    report = reports.get((spec.task, spec.rubric)) if spec.task else None
    own = assignment.cells.get((spec.task or "").partition("/")[2], spec)
    why = errors.get(own.cell_id) or errors.get(spec.cell_id, "its test cell did not run")
    return CheckedCell(spec, report, "" if report or spec.kind == "manual" else why)


def markdown(name: str, cells: Iterable[CheckedCell]) -> str:
    """A heading and a table in Markdown, for the summary of a GitHub job. name: the notebook's."""
    cells = list(cells)
    sums = [(one.points, one.spec.points, one.open) for one in cells]
    points, most, open_ = map(sum, zip(*sums, strict=True))
    rows = [
        f"| {_text(_title(one.spec))} | {number(one.points)} of {number(one.spec.points)} "
        f"| {'<br>'.join(map(_text, one.losses()))} |"
        for one in cells
    ]
    rest = f"; {number(open_)} more cannot be given here" if open_ else ""
    return "\n".join(
        [
            f"### {_text(name)}: {number(points)} of {number(most)} points{rest}",
            "",
            "| task | points | what to look at |",
            "|---|---|---|",
            *rows,
            "",
            "These are the public checks, on the inputs of your own notebook. The grader draws others.",
            "",
        ]
    )


def _title(spec: CellSpec) -> str:
    name = (spec.task or spec.grade_id).partition("/")[2] or spec.grade_id
    return f"{name}, timed" if spec.rubric == "time" else name


def _text(text: str) -> str:
    """Text escaped for a cell of a Markdown table, on one line."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "[": "&#91;", "*": "&#42;"}
    return "".join(marks.get(letter, letter) for letter in " ".join(text.split()))
