"""The commands that change grades after hand-in. Each first shows whose grade it moves, and asks."""

import contextlib
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.commands.options import (
    AnswerIsNo,
    Grades,
    ProblemSet,
    Root,
    Submissions,
    Unsafe,
    Yes,
    console,
    here,
    resumable,
    tell,
)
from autograder.layout import SUBMITTED, load_assignment
from autograder.user_error import UserError, nothing_graded, tell_table

if TYPE_CHECKING:
    from autograder.amend import Change, Course

commands = typer.Typer()
PANEL = "Change something after hand-in"
TaskName = Annotated[
    str, typer.Argument(help="A task, or a written answer: ps04/matmul_tiled, ps04/predict_explain.")
]


@commands.command(rich_help_panel=PANEL)
def void(
    task: TaskName,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Nobody has its points, and the others make up for them.")
    ] = False,
    grades: Grades = None,
    yes: Yes = False,
    course: Root = None,
) -> None:
    """A task does not count: everybody has its points, or it is left out of the set."""
    from autograder.amend import void as change

    with _course(task.partition("/")[0], grades, course) as where:
        _decide(where, change(where, task, leave_out), yes)


@commands.command(rich_help_panel=PANEL)
def points(
    task: TaskName,
    worth: Annotated[float, typer.Argument(help="Its points from now on.")],
    grades: Grades = None,
    yes: Yes = False,
    course: Root = None,
) -> None:
    """A task is worth other points; everybody keeps the share that they have."""
    from autograder.amend import new_points

    with _course(task.partition("/")[0], grades, course) as where:
        _decide(where, new_points(where, task, worth), yes)


@commands.command(rich_help_panel=PANEL)
def extend(
    assignment: ProblemSet,
    student: Annotated[str, typer.Argument(help="The student, as the folder of submissions is named.")],
    hours: Annotated[float, typer.Option(help="After the due date; 0 takes an extension away.")],
    grades: Grades = None,
    yes: Yes = False,
    course: Root = None,
) -> None:
    """One student has more time for a set, also for work that comes later."""
    from autograder.amend import extension
    from autograder.discover import student_id

    with _course(assignment, grades, course) as where:
        _decide(where, extension(where, student_id(student), hours), yes)


@commands.command(rich_help_panel=PANEL)
def rubric(assignment: ProblemSet, grades: Grades = None, yes: Yes = False, course: Root = None) -> None:
    """A rubric in solutions/ was changed: what was ticked before counts as it says now."""
    from autograder.amend import new_rubric

    with _course(assignment, grades, course) as where:
        _decide(where, new_rubric(where), yes)


@commands.command(rich_help_panel=PANEL)
def regrade(
    assignment: ProblemSet,
    task: Annotated[
        str, typer.Option(help="Only who has not all points of this task, such as ps04/matmul_tiled.")
    ] = "",
    submissions: Submissions = None,
    grades: Grades = None,
    unsafe: Unsafe = False,
    yes: Yes = False,
    course: Root = None,
) -> None:
    """A check was mended: judge again those concerned, and show whose grade it moves and why."""
    from autograder.amend import judged_again
    from autograder.follow import follow
    from autograder.grade import Asked
    from autograder.sandbox.choose import choose
    from autograder.settings import grade_settings
    from autograder.workers.pool import Threads

    with _course(assignment, grades, course) as where:
        settings, submissions = grade_settings(where.root, ()), submissions or where.root / SUBMITTED
        asked, pool = Asked(settings.time_limit, settings.seed), Threads(choose(unsafe), settings.jobs)
        with judged_again(where, task, submissions, asked, pool, partial(follow, console)) as one:
            _decide(where, one, yes)


@commands.command(rich_help_panel=PANEL)
def undo(grades: Grades = None, yes: Yes = False, course: Root = None) -> None:
    """Take back the last of these changes; said again, the one before."""
    from autograder.gradebook.changes import read_changes

    changes = read_changes(here(course, grades).grades)
    if not changes:
        raise UserError("no change is left to take back")
    with _course(changes[-1].assignment, grades, course) as where:
        _decide(where, where.changes[-1], yes, back=True)


@contextlib.contextmanager
def _course(assignment: str, grades: Path | None, course: Path | None) -> Generator["Course", None, None]:
    """The Course to change, with its grades folder locked. Raises UserError where nothing is graded."""
    from autograder.amend import Course
    from autograder.grade import grading_lock
    from autograder.gradebook.changes import read_changes

    at = here(course, grades)
    released, out = load_assignment(at.root, assignment), at.grades.resolve()
    if not (out / "results" / assignment).is_dir():
        raise nothing_graded(assignment, out)
    with resumable("nothing was changed"), grading_lock(out):
        yield Course(at.root, out, released, read_changes(out))


def _decide(where: "Course", change: "Change", yes: bool, back: bool = False) -> None:
    """Show whose grade a change moves, ask, and make it (or, with back=True, undo it)."""
    from autograder.amend import make, preview

    moved = preview(where, change, back)
    tell(f"{f'taken back, of {change.when}: ' if back else ''}{change.told}")
    if moved:
        tell_table(console, ("student", "before", "after", "why"), moved)
    tell(f"grades that move: {len(moved)}")
    if not (yes or typer.confirm("Do it?")):
        raise AnswerIsNo("nothing was changed")
    make(where, change, back)
    tell("done; `autograder undo` takes the last change back" if not back else "done")
