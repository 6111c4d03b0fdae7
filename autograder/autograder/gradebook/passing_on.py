"""`autograder export`: grades for a spreadsheet, Canvas, Moodle or Blackboard.

Not here: LTI 1.3. Its library for Python, PyLTI1p3, had its last release, 2.0.0, in November 2022, and to
pass a grade back it needs a registered web service which every student has opened once from the platform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.gradebook.gradebook import CourseGradebook
from autograder.gradebook.platform_tables import TABLES
from autograder.gradebook.standing import Standing, standings
from autograder.gradebook.totals import totals, totals_csv
from autograder.layout import assignment_names, load_assignment
from autograder.results import write_atomic
from autograder.roster import read_roster
from autograder.user_error import UserError

TARGETS = ("csv", *TABLES)


@dataclass(frozen=True)
class Exported:
    """path: what was written. left_out: (student, why). advice: what to know before the import."""

    path: Path
    count: int
    left_out: tuple[tuple[str, str], ...] = ()
    advice: str = ""


def read_standings(grades: Path, names: Sequence[str] = ()) -> list[Standing]:
    """Every Standing of these sets (default: all). UserError where nothing has been graded."""
    if not (grades / "gradebook.db").exists():
        raise UserError(f"no gradebook in {grades}; run `autograder grade` first, or give --grades")
    with CourseGradebook(grades) as book:
        found = list(standings(book.gradebook, grades, names))
    lacking = sorted(set(names) - {one.assignment for one in found})
    if lacking or not found:
        raise UserError(
            f"nothing is graded for {', '.join(lacking) or 'any set'} in {grades}; run `autograder grade`"
        )
    return found


def export(
    root: Path,
    names: Sequence[str],
    target: str,
    grades: Path,
    *,
    roster: Path | None = None,
    column: str | None = None,
    drop: int = 0,
    missing_zero: bool = False,
    leave_out_ungraded: bool = False,
) -> Exported:
    """Write the table; the options as the command has them. Raises UserError."""
    if target not in TARGETS:
        raise UserError(f"--to {target!r} is none of {', '.join(TARGETS)}")
    for name in names:
        load_assignment(root, name)  # complains of a name that is none
    if target != "csv" and len(names) != 1:
        raise UserError(
            f"--to {target} takes one set: autograder export {assignment_names(root)[0]} --to {target}"
        )
    found = read_standings(grades, names)
    out = frozenset(timed(found) if leave_out_ungraded else ())
    found = [one.without(out) for one in found]
    if target == "csv":
        path = grades / "totals.csv"
        rows = totals(found, drop, missing_zero)
        write_atomic(path, totals_csv(rows).encode())
        return Exported(path, len(rows))
    if drop or missing_zero:
        raise UserError("--drop-lowest and --missing-zero make totals, which --to csv writes")
    people = read_roster(roster, root)
    if not people:
        raise UserError(
            f"--to {target} needs a roster, which says who is who there: give --roster roster.csv"
        )
    heading = column or load_assignment(root, names[0]).notebook
    table = TABLES[target](found, people, heading)
    _somebody(found, table.left_out)
    path = grades / f"{names[0]}_{target}.csv"
    write_atomic(path, table.text.encode("utf-8"))
    return Exported(path, len(found) - len(table.left_out), table.left_out, _advice(target, heading, column))


def cure(why: str) -> str:
    """What passes on the grade of somebody who is left out for this reason; "" for what nothing does."""
    told = "; --leave-out-ungraded passes on what is judged, and the set has those points fewer"
    return told if "wait for a GPU" in why else ""


def _somebody(found: Sequence[Standing], left_out: Sequence[tuple[str, str]]) -> None:
    """Raise UserError where nobody has a grade to pass on: an empty table would look like a done job."""
    if len(left_out) == len(found):
        some = ", ".join(f"{student}: {why}{cure(why)}" for student, why in left_out[:3])
        more = f", and {len(left_out) - 3} more" if len(left_out) > 3 else ""
        raise UserError(f"nobody has a grade to pass on, so nothing is written: {some}{more}")


def timed(found: Sequence[Standing]) -> set[str]:
    """The cells that are ungraded for anybody."""
    return {
        cell.name for one in found for cell in one.cells if cell.kind == "ungraded" and cell.points is None
    }


def _advice(target: str, heading: str, column: str | None) -> str:
    if target == "blackboard" and "|" not in heading:
        return (
            "Blackboard makes a new column of text of this: download its gradebook and give --column the "
            'head of its column, such as "ps04 [Total Pts: 100 Score] |12345"'
        )
    if target == "canvas" and column is None:
        return (
            f'Canvas makes a new assignment unless one is called {heading}; --column "PS 4 (1234)" names it'
        )
    return "map the last column to the assignment when Moodle asks" if target == "moodle" else ""
