"""`autograder export`: grades for a spreadsheet, Canvas, Moodle or Blackboard.

Open points have columns of their own and never count as 0. What the platforms import:

Canvas (lib/gradebook_importer.rb): the first columns are Student, ID, SIS User ID, SIS Login ID, Section, and
the second line has the points possible. A person is found by ID, then by the SIS columns. An empty cell would
clear a grade, so a student without a grade has no line. A student whose name contains "Points Possible" would
be taken for the second line.
Moodle (grade/import/csv): any columns, which the importer maps; one unknown person stops the whole import.
Blackboard: Username finds the person, the column's ID (`... |12345`) the column; every field is in quotes.

The apostrophe that keeps a spreadsheet from running a formula would change an identifier, as neither Canvas
nor Moodle strips it. So only names are guarded; a student whose identifier begins like a formula is left out.

LTI 1.3 is not supported. Its library for Python, PyLTI1p3, had its last release, 2.0.0, in November 2022, and
passing a grade back needs a registered web service that every student has opened once from the platform.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.csv_tables import csv_text, guard
from autograder.gradebook.export import figure
from autograder.gradebook.gradebook import CourseGradebook
from autograder.gradebook.standing import Standing, standings
from autograder.layout import load_assignment
from autograder.results import write_atomic
from autograder.roster import Person, read_roster
from autograder.user_error import UserError, first_few

LAST = tuple("score out_of ungraded_points manual_points_pending late_penalty without_score dropped".split())


@dataclass(frozen=True)
class Total:
    """One student's total. score: points given in the sets that count. out_of: maximum of the judged cells.

    sets: {set: score, or None without one}. ungraded, manual: points that wait for a GPU, for a person.
    without_score: sets that could not be graded or were not handed in. dropped: sets that do not count.
    """

    student: str
    sets: dict[str, float | None]
    score: float
    out_of: float
    ungraded: float
    manual: float
    penalty: float
    without_score: tuple[str, ...]
    dropped: tuple[str, ...]


def totals(standings: Iterable[Standing], drop: int = 0, missing_zero: bool = False) -> list[Total]:
    """One Total for each student who appears in any set.

    drop: how many of a student's lowest sets do not count, by the share of judged points. A set not handed in
    ranks lowest; one that could not be graded is never dropped. missing_zero: a set not handed in counts 0
    out of all its points. Raises UserError if that leaves no set.
    """
    most: dict[str, float] = {}
    known: defaultdict[str, dict[str, Standing]] = defaultdict(dict)
    for one in standings:
        most[one.assignment] = max(one.max, most.get(one.assignment, 0.0))
        known[one.student][one.assignment] = one
    if drop and drop >= len(most):
        raise UserError(
            f"--drop-lowest {drop} of {len(most)} sets leaves none; drop fewer, or name more sets"
        )
    return [
        _total(
            student,
            [mine.get(name) or Standing(student, name, most[name], "missing") for name in most],
            drop,
            missing_zero,
        )
        for student, mine in sorted(known.items())
    ]


def _total(student: str, sets: Sequence[Standing], drop: int, missing_zero: bool) -> Total:
    ranked = sorted((_share(one), one.assignment) for one in sets if one.status == "missing" or one.decided)
    dropped = tuple(sorted(name for _, name in ranked[:drop]))
    counted = [one for one in sets if one.assignment not in dropped]
    lost = [one.max for one in counted if missing_zero and one.status == "missing"]
    return Total(
        student,
        {one.assignment: one.score if one.has_score else None for one in sets},
        math.fsum(one.score for one in counted),
        math.fsum([*(one.decided for one in counted), *lost]),
        math.fsum(one.open("ungraded") for one in counted),
        math.fsum(one.open("manual") for one in counted),
        math.fsum(one.penalty for one in counted if one.has_score),
        tuple(
            one.assignment for one in counted
            if not one.has_score and not (missing_zero and one.status == "missing")
        ),
        dropped,
    )  # fmt: skip


def _share(one: Standing) -> float:
    """The share of the judged points (0-1), or -1 for a set that was not handed in."""
    return one.score / one.decided if one.has_score else -1.0


def totals_csv(found: Sequence[Total]) -> str:
    """The totals as CSV text, for a spreadsheet."""
    names = list(found[0].sets) if found else []
    rows: list[Sequence[str]] = [("student_id", *names, *LAST)]
    for one in found:
        scores = ("" if score is None else figure(score) for score in one.sets.values())
        sums = (one.score, one.out_of, one.ungraded, one.manual, one.penalty)
        lists = (" ".join(one.without_score), " ".join(one.dropped))
        rows.append((guard(one.student), *scores, *map(figure, sums), *lists))
    return csv_text(rows)


Given = Sequence[tuple[Standing, Person]]
"""The students whose grade is passed on."""


def canvas(given: Given, column: str) -> list[Sequence[str]]:
    """Canvas's table. column: the assignment's title, best with its number as Canvas has it: "PS 4 (123)"."""
    rows: list[Sequence[str]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", column)]
    rows.append(
        ("    Points Possible", "", "", "", "", figure(max((one.max for one, _ in given), default=0.0)))
    )
    for one, person in given:
        ids = (person.lms_user_id, person.sis_user_id, person.id)
        rows.append((name_in_canvas(person), *ids, guard(person.section), figure(one.score)))
    return rows


def name_in_canvas(person: Person) -> str:
    """ "Lovelace, Ada", or the id where the roster has no name."""
    return guard(", ".join(filter(None, (person.last_name, person.first_name))) or person.id)


def moodle(given: Given, column: str) -> list[Sequence[str]]:
    """Moodle's table: map Username or Email address to the person, and the last column to the assignment."""
    rows = ((person.id, person.email, figure(one.score)) for one, person in given)
    return [("Username", "Email address", column), *rows]


def blackboard(given: Given, column: str) -> list[Sequence[str]]:
    """Blackboard's table. column: the head of the column as Blackboard downloads it, with its ID after |."""
    rows = (
        (guard(person.last_name), guard(person.first_name), person.id, figure(one.score))
        for one, person in given
    )
    return [("Last Name", "First Name", "Username", column), *rows]


TABLES = {"canvas": canvas, "moodle": moodle, "blackboard": blackboard}


def platform_table(
    target: str, found: Iterable[Standing], roster: Mapping[str, Person], column: str
) -> tuple[str, list[tuple[str, str]]]:
    """(CSV text for `target`, one of TABLES; [(student left out, why)]). column: head of the grades."""
    given: list[tuple[Standing, Person]] = []
    left_out: list[tuple[str, str]] = []
    for one in found:
        person = roster.get(one.student)
        why = "not in the roster" if person is None else why_not_final(one) or unsafe_cell(person, target)
        if why or person is None:
            left_out.append((one.student, why))
        else:
            given.append((one, person))
    rows = TABLES[target](given, column)
    return csv_text(rows, end="\r\n", quoted=target == "blackboard"), left_out


def why_not_final(one: Standing) -> str:
    """Why this grade cannot be passed on yet; "" if it can."""
    if not one.has_score:
        return f"{one.status}: {one.reason}" if one.reason else one.status
    told = {"ungraded": "wait for a GPU", "manual": "wait for you in formgrader"}
    return ", ".join(f"{figure(one.open(kind))} points {told[kind]}" for kind in told if one.open(kind))


def unsafe_cell(person: Person, target: str) -> str:
    """Why a person's identifier or name cannot be written into a platform's table; "" if it can."""
    for name in ("id", "email", "lms_user_id", "sis_user_id"):
        if guard(getattr(person, name)) != getattr(person, name):
            return f"the roster's {name} begins like a formula: enter this one by hand"
    if target == "canvas" and "Points Possible" in name_in_canvas(person):
        return "Canvas would read this name as the line of points: enter it by hand"
    return ""


TARGETS = ("csv", *TABLES)


@dataclass(frozen=True)
class Exported:
    """The result of an export. path: the file. count: students in it. left_out: (student, why).

    advice: what to know before the import.
    """

    path: Path
    count: int
    left_out: Sequence[tuple[str, str]] = ()
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
    """Write the table; the parameters are the command's options. Raises UserError for options that do not fit
    together, and where nobody has a grade to pass on."""
    if target not in TARGETS:
        raise UserError(f"--to {target!r} is none of {', '.join(TARGETS)}")
    for name in names:
        load_assignment(root, name)  # raises UserError for an unknown name
    if target != "csv" and len(names) != 1:
        raise UserError(f"--to {target} takes one set, such as: autograder export ps04 --to {target}")
    found = read_standings(grades, names)
    out = frozenset(ungraded_cells(found) if leave_out_ungraded else ())
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
    text, left_out = platform_table(target, found, people, heading)
    _require_grades(found, left_out)
    path = grades / f"{names[0]}_{target}.csv"
    write_atomic(path, text.encode())
    return Exported(path, len(found) - len(left_out), left_out, _advice(target, heading, column))


def cure(why: str) -> str:
    """The option that would pass on a grade left out for this reason, in words; "" if there is none."""
    told = "; --leave-out-ungraded passes on what is judged, and the set has those points fewer"
    return told if "wait for a GPU" in why else ""


def _require_grades(found: Sequence[Standing], left_out: Sequence[tuple[str, str]]) -> None:
    """Raise UserError where nobody has a grade to pass on: an empty table would look like success."""
    if len(left_out) == len(found):
        told = first_few([f"{student}: {why}" for student, why in left_out], between="; ")
        cures = next(filter(None, (cure(why) for _, why in left_out)), "")
        raise UserError(f"nobody has a grade to pass on, so nothing is written: {told}{cures}")


def ungraded_cells(found: Sequence[Standing]) -> set[str]:
    """The cells whose points wait for a GPU in any student's submission."""
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
