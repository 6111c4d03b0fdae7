"""What a source yields: each file, whose it is, and why it cannot be taken if so."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from re import Pattern, escape, fullmatch

UNFIT = ("", ".", "..")
LONGEST = 255  # bytes of a folder's name


class Refusal(Exception):
    """A file cannot be taken. The message says why, and goes into the table."""


@dataclass(frozen=True)
class CollectOptions:
    """Options of `collect`. pattern: parses file names that no platform makes (see platforms.parse_name()).

    protocol: how repositories are fetched. deadline: the last commit dated before this time counts, in UTC.
    """

    pattern: Pattern[str] | None = None
    protocol: str = "https"
    deadline: datetime | None = None


@dataclass(frozen=True)
class Owner:
    """Whom a source names as a file's owner: by a student id, or by a platform's name and number.

    by_number: whether the number belongs to the person (Canvas) and not to this assignment alone (Moodle).
    All fields are empty where the source names nobody.
    """

    student: str = ""
    name: str = ""
    number: str = ""
    by_number: bool = False

    def __str__(self) -> str:
        return self.student or f"{self.name}_{self.number}".strip("_")


@dataclass(frozen=True)
class HandedIn:
    """One file that was found at `place`. read: returns its bytes, or raises Refusal; None if it is not read.

    named: whether it has the set's own file name; where no file of a student has, one with the set's cells
    counts. order: of one student's files the largest counts. received: time of arrival in UTC, if known.
    refused: why there is nothing to read. asks: whether it is a request for a regrade, not a notebook.
    others: the students who handed it in together with the owner.
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
    """Whether a file has the wanted name, also as Canvas or a browser alters it for a second upload."""
    stem = escape(wanted.removesuffix(".ipynb"))
    return fullmatch(rf"{stem}(-\d{{1,4}}| ?\(\d{{1,4}}\))?\.ipynb", PurePosixPath(name).name) is not None


def is_request(name: str) -> bool:
    """Whether a file is a request for a regrade, by its name: regrade.md, also as platforms alter it."""
    return fullmatch(r"regrade(-\d{1,4}| ?\(\d{1,4}\))?\.md", PurePosixPath(name).name) is not None


def unfit(student: str) -> str:
    """Why `student` cannot be the name of a student's folder; "" if it can."""
    if any(sign in student for sign in "/\\\0"):
        return f"{student[:60]!r} leads out of the folder"
    if student in UNFIT or student.startswith((".", "__")):
        return f"{student!r} cannot be a student's folder"
    if not student.isprintable():
        return f"{student[:60]!r} holds signs that cannot be shown"
    if len(student.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"{student[:40]!r}... has more than {LONGEST} bytes"
    return ""
