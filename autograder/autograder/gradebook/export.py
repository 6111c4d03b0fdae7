"""grades.csv: nbgrader's scores, with what nbgrader cannot say.

That is a status, and ungraded and pending points told apart from 0.
"""

import csv
import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin

from autograder.results import Results, write_atomic

COLUMNS: tuple[str, ...] = (
    "assignment",
    "student_id",
    "status",
    "score",
    "max_score",
    "ungraded_points",
    "manual_points_pending",
    "late_penalty",
    "reason",
    "isolation",
    "attempt",
)
# Where a spreadsheet would see a formula begin, whichever sign its settings have between cells (commas
# stand in quotes here): in front of = + - @ tab or return, or wide forms. Spaces and quotes may be between.
FORMULA = re.compile(r"""(?:^|(?<=[;\t|]))(?=[\s"']*[=+@\t\r\uff1d\uff0b\uff0d\uff20-])""")


class GradesExport(ExportPlugin):
    """`nbgrader export` with our configuration: the same file as `autograder grade` writes."""

    def export(self, gradebook: Gradebook) -> None:
        out = Path(str(gradebook.engine.url.database)).parent
        path = Path(self.to) if self.to else out / "grades.csv"
        write_csv(gradebook, out, path, self.assignment, self.student)


def write_csv(
    gradebook: Gradebook,
    out: Path,
    path: Path,
    assignments: Collection[str] = (),
    students: Collection[str] = (),
) -> None:
    """Write one row for each student and assignment (default: all of them).

    Manual scores given in formgrader count.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    released: list[Any] = sorted(gradebook.assignments, key=lambda one: one.name)
    for assignment in released:
        if assignments and assignment.name not in assignments:
            continue
        records = Results(out, assignment.name).all()
        entered = {submission.student_id: submission for submission in assignment.submissions}
        for student in sorted(records.keys() | entered.keys()):
            if students and student not in students:
                continue
            row = row_of(assignment, entered.get(student), records.get(student, {"status": "not graded"}))
            row |= {"student_id": guard(student), "reason": guard(row["reason"])}
            writer.writerow({"assignment": assignment.name} | row)
    write_atomic(path, text.getvalue().encode())


def row_of(assignment: Any, submission: Any, record: Mapping[str, Any]) -> dict[str, str]:
    """The figures of one row. A submission that could not be graded has empty figures, never 0.

    assignment, submission (or None): nbgrader's, whose columns have no types.
    """
    row = dict.fromkeys(COLUMNS[3:], "") | {
        "status": record["status"],
        "max_score": f"{assignment.max_score:g}",
        "reason": record.get("reason", ""),
        "isolation": record.get("isolation", ""),
        "attempt": str(record.get("attempt") or ""),
    }
    if submission is None or record["status"] in ("malformed", "missing", "not graded"):
        return row
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    waiting = [grade for grade in grades if grade.auto_score is None and grade.manual_score is None]
    pending = {
        kind: sum(grade.max_score for grade in waiting if grade.cell.cell_type == kind)
        for kind in ("code", "markdown")
    }
    return row | {
        "score": figure(max(0.0, submission.score - submission.late_submission_penalty)),
        "late_penalty": figure(submission.late_submission_penalty),
        "ungraded_points": figure(pending["code"]),
        "manual_points_pending": figure(pending["markdown"]),
    }


def figure(points: float) -> str:
    """Points to the hundredth, as the feedback page has them."""
    return f"{round(points, 2):g}"


def guard(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, nor a part of it where it takes other separators.

    An apostrophe stands in front of a = + - @ tab or return that begins the text or follows a separator, and
    in front of spaces, quotes and apostrophes before one, so that two texts never become one.
    """
    return FORMULA.sub("'", " ".join(text.split("\n")))
