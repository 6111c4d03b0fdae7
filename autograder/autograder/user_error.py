"""What a person at the command line is meant to see: the one exception, and lines as they are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class UserError(Exception):
    """Something the user can put right. The message is one line: what, where, the limit, the next step.

    status: exit status of the command.
    """

    status = 2


def nothing_graded(assignment: str, out: Path) -> UserError:
    """What to say where a command needs results, and there are none."""
    return UserError(f"nothing is graded for {assignment} in {out}; run `autograder grade {assignment}`")


def in_the_way(problem: BaseException) -> str:
    """Of a file, a folder or a database that cannot be used, which and why."""
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


def some(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """ "ada, bob, eve and 4 more"."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def tell(console: Console, text: str) -> None:
    """One line as it is: no markup, no wrapping."""
    console.print(text, markup=False, soft_wrap=True)


def tell_table(
    console: Console, headings: Sequence[str], rows: Iterable[Iterable[str]], title: str = ""
) -> None:
    """A table of texts as they are, folded where they are long."""
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(*(Column(name, overflow="fold") for name in headings), title=title, title_justify="left")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
