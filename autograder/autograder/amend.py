"""Changes after hand-in: a task voided or worth other points, an extension, a new rubric, a regrade.

Each becomes a Change (autograder.gradebook.changes). `preview` applies it to a copy of the gradebook and says
whose grade it moves; `make` adds it to the list of changes and applies it. Undoing applies the last change
backwards.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.exc import OperationalError

from autograder.discover import find_submissions
from autograder.grade import FINAL, Asked, Grading
from autograder.gradebook import CourseGradebook, write_csv
from autograder.gradebook.changes import FILE, Change, ChangedSet, write_changes
from autograder.gradebook.export import figure
from autograder.gradebook.standing import Standing, standings
from autograder.layout import Assignment
from autograder.release.release import nbgrader_config
from autograder.release.sample_answer import sample_answers, ticked
from autograder.report.page import Pages, read_autograded, verdict_of
from autograder.results import Results, StoredRecord
from autograder.roster import read_roster
from autograder.user_error import UserError, cause_of, nearest
from autograder.worked import worked
from autograder.workers.interrupts import deferred_interrupts
from autograder.workers.pool import Pool

Moved = list[tuple[str, str, str, str]]  # student, before, after, why
MOST_POINTS, MOST_HOURS = 1_000, 24 * 366  # of a task, of an extension


@dataclass(frozen=True)
class Course:
    """The problem set that is changed. root: the course folder. out: the folder of grades.

    changes: every change made in `out` so far, of all sets.
    """

    root: Path
    out: Path
    assignment: Assignment
    changes: list[Change]

    @property
    def in_force(self) -> ChangedSet:
        """The sum of all changes of this set."""
        return ChangedSet.of(self.changes, self.assignment)

    def change(self, told: str, **what: Any) -> Change:
        """A Change of this set with the present time. told: its sentence. what: further fields of Change."""
        return Change(self.assignment.name, told, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", **what)


def cells_of(course: Course, task: str) -> dict[str, float]:
    """{grade id: points in force} of a task or a written answer. Raises UserError for an unknown name."""
    name, worth = course.assignment.name, course.in_force.worth
    known = {spec.grade_id: spec.task or f"{name}/{spec.grade_id}" for spec in course.assignment.graded()}
    found = {cell: worth[cell] for cell in known if known[cell] == task}
    if not found:
        raise UserError(f"{name} has no task {task!r}{nearest(task, set(known.values()))}")
    return found


def void(course: Course, task: str, leave_out: bool) -> Change:
    """Give everybody all points of a task; or, with leave_out, spread its points over the other tasks.

    Raises UserError where the task counts nothing, or everybody has its points, or no other task is left.
    """
    cells, in_force = cells_of(course, task), course.in_force
    if not sum(cells.values()):
        raise UserError(f"{task} counts nothing already; `autograder undo` takes the last change back")
    given: dict[str, float | None] = dict.fromkeys(cells)
    if not leave_out:
        if set(cells) <= set(in_force.given):
            raise UserError(f"everybody has all points of {task} already")
        told = f"{task} does not count; everybody has its {figure(sum(cells.values()))} points"
        return course.change(told, given=list(cells), entered=_rescored(course, given))
    others = {cell: points for cell, points in in_force.worth.items() if cell not in cells}
    if not sum(others.values()):
        raise UserError(f"{course.assignment.name} has no other task; without --leave-out all get its points")
    ratio = 1 + sum(cells.values()) / sum(others.values())
    worth = dict.fromkeys(cells, 0.0) | {cell: ratio * points for cell, points in others.items()}
    told = f"{task} is left out; the others count {ratio:.4g} times as much, so that the set keeps its points"
    return course.change(told, worth=worth, entered=_rescored(course, given | dict.fromkeys(others, ratio)))


def new_points(course: Course, task: str, points: float) -> Change:
    """Change what a task is worth; everybody keeps their share of it. Raises UserError for other values."""
    cells = cells_of(course, task)
    before = sum(cells.values())
    if not before or points == before or not 0 < points <= MOST_POINTS:
        raise UserError(
            f"{task} has {figure(before)} points and cannot have {points:g}: expected another above 0, "
            f"{MOST_POINTS:,} at most; `autograder void {task} --leave-out` leaves it out"
        )
    worth = {cell: each * points / before for cell, each in cells.items()}
    told = f"{task} is worth {figure(points)} points instead of {figure(before)}"
    return course.change(told, worth=worth, entered=_rescored(course, dict.fromkeys(cells, points / before)))


def extension(course: Course, student: str, hours: float) -> Change:
    """Give one student `hours` after the due date, as nbgrader's own extension; future work has it, too.

    Raises UserError for an unknown student, for hours out of range and for a set without a due date.
    """
    if not 0 <= hours <= MOST_HOURS:
        raise UserError(f"--hours {hours:g}: expected 0 to {MOST_HOURS:,}, a year")
    with CourseGradebook(course.out) as book:
        book.add_assignment(course.assignment)
        known = {str(one.id) for one in book.gradebook.students} | read_roster(None, course.root).keys()
        due = book.gradebook.find_assignment(course.assignment.name).duedate
    if student not in known:
        raise UserError(
            f"nobody here is called {student!r}{nearest(student, known)}; "
            f"put a new student into roster.csv, or run `nbgrader db student add {student}`"
        )
    if due is None:
        name = course.assignment.name
        raise UserError(f'{name} has no due date: nbgrader db assignment add {name} --duedate="..."')
    told = f"{student} may hand in {course.assignment.name} {figure(hours)} hours after {due} UTC"
    return course.change(told, quiet=True, hours={student: hours})


def new_rubric(course: Course) -> Change:
    """Bring the rubric items ticked in comments to the points and words that solutions/ has now.

    Scores change by the difference. Raises UserError where nothing differs.
    """
    answers, worth = sample_answers(course.root, course.assignment), course.in_force.worth
    entered: dict[str, dict[str, tuple[Any, Any]]] = {}
    for student, fields in _by_hand(course).items():
        for cell, answer in answers.items():
            comment, score = fields.get(f"comment {cell}", ""), fields.get(f"score {cell}")
            mended = answer.renewed(comment)
            if mended == comment or score is None:
                continue
            more = ticked(mended) - ticked(comment)
            new = round(min(max(score + more, 0.0), worth[cell]), 2)
            changed = {f"comment {cell}": (comment, mended), f"score {cell}": (score, new)}
            entered[student] = entered.get(student, {}) | changed
    if not entered:
        raise UserError("no ticked item has other points or words in solutions/ than in the comments")
    told = f"the rubric of {course.assignment.name}'s written answer was changed"
    return course.change(told, quiet=True, entered=entered)


def _by_hand(course: Course) -> dict[str, dict[str, Any]]:
    """{student: what a person entered, as gradebook.Edits}."""
    with CourseGradebook(course.out) as book:
        students = Results(course.out, course.assignment.name).all()
        return {student: book.entered(course.assignment, student) for student in students}


def _rescored(course: Course, ratios: Mapping[str, float | None]) -> dict[str, dict[str, tuple[Any, Any]]]:
    """The field `entered` of a Change that multiplies scores given by hand; a ratio of None removes them."""
    found: dict[str, dict[str, tuple[Any, Any]]] = {}
    for student, fields in _by_hand(course).items():
        for cell, ratio in ratios.items():
            score = fields.get(f"score {cell}")
            if score is not None:
                new = None if ratio is None else score * ratio
                found.setdefault(student, {})[f"score {cell}"] = (score, new)
    return found


@contextlib.contextmanager
def judged_again(
    course: Course, task: str, submissions: Path, asked: Asked, pool: Pool, watch: Callable[[Grading], object]
) -> Generator[Change]:
    """Judge the set again in a temporary folder, each submission on the inputs it was judged on before.

    task: only those who lost points in it; "" for everybody. watch: runs the Grading and shows its progress.
    Yields the Change; its `beside` is the temporary folder, so it must be made inside the `with` block.
    Raises UserError where nobody is to be judged again.
    """
    name, before = course.assignment.name, Results(course.out, course.assignment.name).all()
    if task:
        cells_of(course, task)  # raises UserError for an unknown task
    with tempfile.TemporaryDirectory(prefix="regrade-") as folder:
        copied(course, Path(folder))
        homes = {one.student: one.home.name for one in find_submissions(submissions, course.assignment)}
        again = [homes[who] for who in before if who in homes and needs_regrade(before[who], task)]
        if not again:
            raise UserError(f"nobody lost points in {task or name}")
        asked = replace(asked, students=again, regrade=True)
        watch(Grading(course.root, name, submissions, folder, asked, pool=pool))
        after = Results(folder, name).all()
        judged = {
            who: (before[who], one)
            for who, one in after.items()
            if homes.get(who) in again and one["status"] in FINAL
        }
        yield course.change(f"{task or name} was judged again", quiet=True, judged=judged, beside=folder)


def needs_regrade(record: StoredRecord, task: str) -> bool:
    """Whether this submission was judged, and lost points in the task if one is named."""
    cells = (record["verdict"] or {"cells": {}})["cells"].values()
    return bool(cells) and (
        not task or any(cell["task"] == task and cell["state"] != "full" for cell in cells)
    )


def copied(course: Course, folder: Path) -> None:
    """Copy all that the set's grades depend on (gradebook, seed, changes, results) into a scratch folder."""
    with closing(sqlite3.connect(course.out / "gradebook.db")) as book:
        with closing(sqlite3.connect(folder / "gradebook.db")) as copy:
            book.backup(copy)
    for name in (".seed", FILE):
        if (course.out / name).exists():
            shutil.copy(course.out / name, folder)
    results = Path("results", course.assignment.name)
    shutil.copytree(course.out / results, folder / results)


def preview(course: Course, change: Change, back: bool = False) -> Moved:
    """Whose grade a change moves, found by applying it to a copy. back: preview its undoing instead."""
    with tempfile.TemporaryDirectory(prefix="preview-") as folder:
        copied(course, Path(folder))
        before = _standings(course, Path(folder))
        _apply(course, Path(folder), change, back)
        after = _standings(course, Path(folder))
    return [
        (student, _grade_text(before[student]), _grade_text(one), _rows_moved(change, student, back))
        for student, one in after.items()
        if _grade_text(before[student]) != _grade_text(one)
    ]


def make(course: Course, change: Change, back: bool = False) -> None:
    """Make a change, or with back=True undo the last: in the list of changes, gradebook, results and pages.

    The list holds a change before anything else is written, and until all of it is undone, so that a run
    that was stopped halfway can still be undone. Raises UserError when it is stopped.
    """
    if not back:
        write_changes(course.out, [*course.changes, msgspec.structs.replace(change, beside="")])
    try:
        with deferred_interrupts():
            _apply(course, course.out, change, back)
    except (OSError, OperationalError, KeyboardInterrupt) as problem:
        what = cause_of(problem) or "Ctrl-C"
        raise UserError(
            f"stopped halfway: {what}; put that right and run `autograder undo`, which takes all of it back"
        ) from None
    if back:
        write_changes(course.out, course.changes[:-1])


def _apply(course: Course, out: Path, change: Change, back: bool) -> None:
    """Apply or undo a change in the gradebook and results in `out`; in the course's own folder on pages, too.

    A value that somebody has altered since the change was prepared stays as it is.
    """
    assignment, stored, new = course.assignment, Results(out, course.assignment.name), 0 if back else 1
    pages = Pages(out, assignment, worked(course.root, assignment.name)) if out == course.out else None
    with CourseGradebook(out, nbgrader_config(course.root)) as book:
        book.changes = course.changes[:-1] if back else [*course.changes, change]
        book.add_assignment(assignment)
        for student, known in stored.all().items():
            if not book.has(assignment, student):
                continue
            pair = change.judged.get(student, (known, known))
            record: Any = pair[new] if pair[1 - new]["key"] == known["key"] else known
            if student in change.hours:
                hours: Any = book.in_force(assignment).hours.get(student, 0)
                book.gradebook.grant_extension(assignment.name, student, hours=hours)
            verdict = verdict_of(book, assignment, record)
            here, fields = book.entered(assignment, student), change.entered.get(student, {})
            edits = {name: pair[new] for name, pair in fields.items() if here.get(name) == pair[1 - new]}
            book.enter_again(assignment, student, verdict.points if verdict else {}, edits)
            if pages:
                shown = read_autograded(pages.autograded(student))
                shown = shown or read_autograded(Pages(Path(change.beside), assignment).autograded(student))
                if verdict and shown:
                    pages.write_notebook(student, shown, verdict, record.get("attempt") or 1)
                pages.write_feedback(book, record)
            stored.write(student, record)
        if pages:
            write_csv(book.gradebook, out, out / "grades.csv")


def _standings(course: Course, out: Path) -> dict[str, Standing]:
    with CourseGradebook(out) as book:
        return {one.student: one for one in standings(book.gradebook, out, [course.assignment.name])}


def _grade_text(one: Standing) -> str:
    """A grade in words, for the columns before and after of a preview."""
    if not one.has_score:
        return one.status
    waits = one.open("ungraded") + one.open("manual")
    off = f", {figure(one.penalty)} off for lateness" if one.penalty else ""
    return f"{figure(one.score)} of {figure(one.max)}{off}" + (f", {figure(waits)} open" if waits else "")


def _rows_moved(change: Change, student: str, back: bool) -> str:
    """The rubric rows whose points differ after a regrade, with the reasons; "" for other changes."""
    if student not in change.judged:
        return ""
    was, now = (
        {(cell["task"], line["title"]): line for cell in cells for line in cell["lines"]}
        for record in (change.judged[student][:: -1 if back else 1])
        for cells in [(record["verdict"] or {"cells": {}})["cells"].values()]
    )
    return "; ".join(
        f"{row[1]} {figure(was[row]['points'])} to {figure(line['points'])}: {line['reason']}"
        for row, line in now.items()
        if row in was and was[row]["points"] != line["points"]
    )
