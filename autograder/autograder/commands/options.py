"""What several commands share: the console, common options, and the errors that end a command."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from autograder.layout import GRADES, SUBMITTED, find_root
from autograder.user_error import UserError, cause_of
from autograder.user_error import tell as tell_on

console = Console(highlight=False)
Root = Annotated[
    Path | None, typer.Option("--course", help="The course folder (default: found from here upwards).")
]
ProblemSet = Annotated[str, typer.Argument(help="Problem set, for example ps04.")]
GradedSets = Annotated[
    list[str] | None, typer.Argument(help="Problem sets, for example ps04 (default: all that are graded).")
]
Submissions = Annotated[
    Path | None, typer.Option(help="Folder with one folder per student (default: submitted/).")
]
Grades = Annotated[
    Path | None, typer.Option(help="Folder of gradebook.db, grades.csv, feedback/ (default: grades/).")
]
Students = Annotated[
    list[str] | None,
    typer.Option("--student", help="Only this student's folder; may be given several times."),
]
Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Run students' code without a sandbox; every grade says so.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Page = Annotated[
    Path | None, typer.Option("--to", help="The page (default: one in that folder; its name is printed).")
]
RosterFile = Annotated[
    Path | None,
    typer.Option(help="CSV file of the class (default: roster.csv in the course folder, if it is there)."),
]


class AnswerIsNo(UserError):
    """The command worked and its answer is no."""

    status = 1


class Stopped(UserError):
    """Ctrl-C."""

    status = 130


@contextlib.contextmanager
def resumable(kept: str = "what was graded is kept") -> Generator[None, None, None]:
    """Turn Ctrl-C, a full disk or a locked gradebook in the block into a one-line UserError.

    kept: says in that line what is left of the work.
    """
    import sqlite3

    from sqlalchemy.exc import OperationalError

    try:
        yield
    except (OSError, OperationalError, sqlite3.Error) as problem:
        raise UserError(
            f"stopped: {cause_of(problem)}; {kept}, put that right and run the same command"
        ) from None
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {kept}, run the same command to go on") from None


def tell(text: str) -> None:
    """Print one line without interpreting markup."""
    tell_on(console, text)


@dataclass(frozen=True)
class Here:
    """The folders that a command works on: the course, its grades, its submissions."""

    root: Path
    grades: Path
    submissions: Path

    def shown(self, path: Path) -> Path:
        """A path for printing: relative to the course folder if it lies in it."""
        try:
            return path.resolve().relative_to(self.root)
        except ValueError:
            return path


def here(course: Path | None, grades: Path | None = None, submissions: Path | None = None) -> Here:
    """The folders that options name, or the defaults. Raises UserError outside a course."""
    root = find_root(course)
    return Here(root, grades or root / GRADES, submissions or root / SUBMITTED)
