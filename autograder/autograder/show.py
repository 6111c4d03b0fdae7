"""What `autograder grade` prints at its end."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.grade import Grading, Row
from autograder.gradebook.changes import ChangedSet, read_changes
from autograder.gradebook.export import figure
from autograder.lookalikes import told_apart
from autograder.user_error import first_few, tell


def summary(console: Console, grading: Grading, rows: list[Row], out: Path) -> None:
    """Print the table of one set, how many results are from earlier runs, and where the files are."""
    worth = ChangedSet.of(read_changes(grading.out), grading.assignment).worth
    console.print(grades_table(grading.assignment.notebook, sum(worth.values()), rows))
    old = sum(not row.fresh for row in rows)
    if old:
        tell(console, f"{old} of {len(rows)} unchanged since the last run: not graded again")
    if late := grading.without_time:
        cure = "their times belong into the file of --received, or take --Grade.exchange=True"
        told = f"{len(late)} have no time of arrival: nothing is taken off for lateness"
        tell(console, f"{told}: {first_few(late)}; {cure}")
    tell(console, f"student code ran {grading.pool.isolation}")
    tell(console, f"{out}/grades.csv  {out}/feedback/  {out}/gradebook.db")


def grades_table(notebook: str, most: float, rows: list[Row]) -> Table:
    """One line a student: status, score, points still open, reason. most: the points of the set.

    A submission that was not graded shows no score.
    """
    table = Table("student", "status", title=f"{notebook} ({figure(most)} points)")
    table.title_justify = "left"
    for name in ("score", "ungraded", "by hand"):
        table.add_column(name, justify="right")
    table.add_column("why")
    shown = told_apart(row.student for row in rows)
    for row in rows:
        figures = ["" if value is None else figure(value) for value in (row.score, row.ungraded, row.manual)]
        table.add_row(*(Text(text) for text in (shown[row.student], row.status, *figures, row.reason)))
    return table
