"""What a source found: each file in it, whose it is, and why one cannot be taken."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from re import Pattern, escape, fullmatch

UNFIT = ("", ".", "..")
LONGEST = 255  # bytes of a folder's name


class Refusal(Exception):
    """Why something cannot be taken in. The message goes into the table."""


@dataclass(frozen=True)
class CollectOptions:
    """pattern: of other file names. protocol: how repositories are fetched. deadline: the last commit that
    its author dated before this time, in UTC, counts.
    """

    pattern: Pattern[str] | None = None
    protocol: str = "https"
    deadline: datetime | None = None


@dataclass(frozen=True)
class Owner:
    """Whose it is said to be. student: an id; or a platform's name and number for the person.

    by_number: whether the number is the person's own (Canvas) and not one for this assignment (Moodle).
    """

    student: str = ""
    name: str = ""
    number: str = ""
    by_number: bool = False

    def __str__(self) -> str:
        return self.student or f"{self.name}_{self.number}".strip("_")


@dataclass(frozen=True)
class HandedIn:
    """One file. read: gives the bytes of a notebook, or raises Refusal. place: where it was found.

    named: whether it has the set's own file name; another notebook counts where none has, if it holds the
    set's cells. order: of several of one person the largest counts. received: in UTC, where whoever collects
    knows it. refused: why there is nothing to read. asks: whether it is no notebook, but asks for a regrade.
    others: who handed it in together with the owner.
    """

    owner: Owner
    place: str
    read: Callable[[], bytes] | None = None
    order: tuple[int | str, ...] = ()
    received: datetime | None = None
    note: str = ""
    refused: str = ""
    named: bool = True
    asks: bool = False
    others: tuple[Owner, ...] = ()


def is_notebook(name: str, wanted: str) -> bool:
    """Whether a file's name is the wanted one, or what Canvas or a browser makes of a second upload of it."""
    stem = escape(wanted.removesuffix(".ipynb"))
    return fullmatch(rf"{stem}(-\d{{1,4}}| ?\(\d{{1,4}}\))?\.ipynb", PurePosixPath(name).name) is not None


def is_request(name: str) -> bool:
    """Whether a file asks for a regrade, by its name or by what a platform makes of it."""
    return fullmatch(r"regrade(-\d{1,4}| ?\(\d{1,4}\))?\.md", PurePosixPath(name).name) is not None


def unfit(student: str) -> str:
    """Why this cannot be the name of a student's folder; "" if it can."""
    if any(sign in student for sign in "/\\\0"):
        return f"{student[:60]!r} leads out of the folder"
    if student in UNFIT or student.startswith((".", "__")):
        return f"{student!r} cannot be a student's folder"
    if not student.isprintable():
        return f"{student[:60]!r} holds signs that cannot be shown"
    if len(student.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"{student[:40]!r}... has more than {LONGEST} bytes"
    return ""
