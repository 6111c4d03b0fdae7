"""grades.csv: nbgrader's scores, and what nbgrader does not know: a status, and open points apart from 0."""

from collections.abc import Collection
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin

from autograder.csv_tables import guard
from autograder.gradebook.standing import Standing, standings
from autograder.results import write_rows

COLUMNS = tuple(
    "assignment student_id status score max_score ungraded_points manual_points_pending late_penalty reason "
    "isolation attempt".split()
)


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
    """Write one row for each student and assignment (default: all), with scores given in formgrader.

    out: the grades folder. path: the file to write.
    """
    rows = [
        row_of(standing).values()
        for standing in standings(gradebook, out, assignments)
        if not students or standing.student in students
    ]
    write_rows(path, [COLUMNS, *rows])


def row_of(standing: Standing) -> dict[str, str]:
    """{column: text} of one row. A submission that could not be graded has empty figures, never 0."""
    row = dict.fromkeys(COLUMNS, "") | {
        "assignment": standing.assignment,
        "student_id": guard(standing.student),
        "status": standing.status,
        "max_score": figure(standing.max),
        "reason": guard(standing.reason),
        "isolation": standing.isolation,
        "attempt": str(standing.attempt or ""),
    }
    if not standing.has_score:
        return row
    return row | {
        "score": figure(standing.score),
        "late_penalty": figure(standing.penalty),
        "ungraded_points": figure(standing.open("ungraded")),
        "manual_points_pending": figure(standing.open("manual")),
    }


def figure(points: float) -> str:
    """Points as text, rounded to the hundredth."""
    return f"{round(points, 2):g}"
