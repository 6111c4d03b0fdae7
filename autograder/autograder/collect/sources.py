"""What lies at --from, and what is in it."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from autograder.collect.archives import at_most, by_name, in_archive
from autograder.collect.handed_in import HandedIn, Owner, Refusal
from autograder.collect.repositories import in_repositories
from autograder.discover import find_submissions
from autograder.layout import Assignment
from autograder.receipt import exchange_time
from autograder.user_error import UserError
from autograder.validate import Malformed, read_bytes


def kind_of(source: Path, assignment: Assignment) -> str:
    """What a path is: "repositories", "archive", "exchange", "archives" or "folders"."""
    if source.is_file():
        return "repositories" if source.suffix == ".csv" else "archive"
    if not source.is_dir():
        raise UserError(
            f"there is no {source}; expected a folder, a zip archive or a CSV file of repositories"
        )
    if any(source.glob(f"*+{assignment.name}+*")):
        return "exchange"
    return "archives" if any(path.is_file() for path in source.iterdir()) else "folders"


def handed_in(
    source: Path,
    assignment: Assignment,
    pattern: re.Pattern[str] | None = None,
    protocol: str = "https",
    deadline: datetime | None = None,
) -> Iterator[HandedIn]:
    """All that lies at `source`."""
    kind = kind_of(source, assignment)
    if kind == "repositories":
        return in_repositories(source, assignment, protocol, deadline)
    if kind == "archive":
        return in_archive(source, assignment.filename, pattern)
    return {"exchange": _exchange, "archives": _files, "folders": _folders}[kind](source, assignment, pattern)


def _folders(source: Path, assignment: Assignment, _: object) -> Iterator[HandedIn]:
    for one in find_submissions(source, assignment):
        owner = Owner(student=one.home.name)
        if one.path is None:
            yield HandedIn(owner, one.home.name, refused=one.reason)
        else:
            yield HandedIn(owner, str(one.path.relative_to(source)), partial(_plain, one.path, one.home))


def _exchange(source: Path, assignment: Assignment, _: object) -> Iterator[HandedIn]:
    """The inbound folder of nbgrader's exchange: USER+SET+TIME, with or without more behind it.

    Everybody may write there: of several the latest counts that belongs to its user, if one does.
    """
    for home in sorted(source.glob(f"*+{assignment.name}+*")):
        user, _, stamp, *_ = home.name.split("+")
        received = exchange_time(home)
        path = home / assignment.filename
        missing = _missing(path)
        read = None if missing else partial(_plain, path, home)
        note = _owner_note(home, user)
        order = ("another's" if note else "own", stamp)
        yield HandedIn(Owner(student=user), home.name, read, order, received, note, missing)


def _missing(path: Path) -> str:
    """Why there is no such file; "" if there is one. A student may close the folder that it lies in."""
    try:
        return "" if path.exists() or path.is_symlink() else f"no {path.name}"
    except OSError as problem:
        return f"its folder cannot be read: {problem.strerror}"


def _owner_note(home: Path, user: str) -> str:
    """nbgrader submit writes under the student's account, so another owner is worth a look."""
    try:
        owner = home.owner()
    except (KeyError, OSError):
        return ""
    return "" if owner == user else f"its folder belongs to {owner}, not to {user}"


def _files(source: Path, assignment: Assignment, pattern: re.Pattern[str] | None) -> Iterator[HandedIn]:
    """A folder of archives and loose files, as nbgrader's zip_collect has them in downloaded/SET/archive/."""
    for path in sorted(source.iterdir()):
        if not path.is_file():
            continue
        read = partial(_plain, path, source)
        found = [*by_name(path.name, read, assignment.filename, pattern)]
        if not found and path.suffix == ".zip":
            yield from in_archive(path, assignment.filename, pattern)
        yield from found


def _plain(path: Path, inside: Path) -> bytes:
    try:
        if path.suffix == ".zip":
            with open(path, "rb") as file:
                return at_most(file)
        return read_bytes(path, inside)
    except Malformed as problem:
        raise Refusal(str(problem)) from None
    except OSError as problem:
        raise Refusal(f"it cannot be read: {problem.strerror}") from None
