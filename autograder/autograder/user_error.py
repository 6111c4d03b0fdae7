"""What the user of the command line sees: the exception for it, and helpers to word and print messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class UserError(Exception):
    """An error that the user can fix. The message is one line: what, where, the limit, the next step.

    status: exit status of the command.
    """

    status = 2


def nothing_graded(assignment: str, out: Path) -> UserError:
    """The error of a command that needs results where there are none."""
    return UserError(f"nothing is graded for {assignment} in {out}; run `autograder grade {assignment}`")


def cause_of(problem: BaseException) -> str:
    """Which file, folder or database cannot be used, and why, in words."""
    if isinstance(problem, OSError) and problem.filename:
        return f"cannot use {problem.filename}: {problem.strerror}"
    return str(getattr(problem, "orig", None) or problem)


def nearest(word: str, known: Iterable[str]) -> str:
    """' (did you mean ps04?)' for the known names closest to `word`, or all names if none is close."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=2, cutoff=0.5)
    if close:
        return f" (did you mean {' or '.join(close)}?)"
    return f" (known: {', '.join(names)})" if names else ""


def first_few(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """ "ada, bob, eve and 4 more"."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def tell(console: Console, text: str) -> None:
    """Print one line without interpreting markup and without wrapping."""
    console.print(text, markup=False, soft_wrap=True)


def tell_table(
    console: Console, headings: Sequence[str], rows: Iterable[Iterable[str]], title: str = ""
) -> None:
    """Print a table without interpreting markup; long texts are folded."""
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(*(Column(name, overflow="fold") for name in headings), title=title, title_justify="left")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
