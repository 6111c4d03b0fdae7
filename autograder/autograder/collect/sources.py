"""Reads the source of `autograder collect --from`, whichever kind it is."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from autograder.collect.archives import at_most, by_name, in_archive, of_kind
from autograder.collect.handed_in import CollectOptions, HandedIn, Owner, Refusal
from autograder.collect.platforms import parse_name
from autograder.collect.repositories import in_repositories
from autograder.discover import find_submissions
from autograder.layout import Assignment
from autograder.receipt import exchange_time
from autograder.user_error import UserError
from autograder.validate import Malformed, read_bytes


def handed_in(source: Path, assignment: Assignment, options: CollectOptions) -> Iterator[HandedIn]:
    """Yield every file at `source`. Raises UserError for a source of an unknown kind."""
    pattern = options.pattern
    if source.is_file():
        if source.suffix == ".csv":
            return in_repositories(source, assignment, options.protocol, options.deadline)
        return (
            _issues(source) if source.suffix == ".json" else in_archive(source, assignment.filename, pattern)
        )
    if not source.is_dir():
        raise UserError(
            f"there is no {source}; expected a folder, a zip archive or a CSV file of repositories"
        )
    exchange = any(source.glob(f"*+{assignment.name}+*"))
    return _exchange(source, assignment) if exchange else _folder(source, assignment, pattern)


def _issues(source: Path) -> Iterator[HandedIn]:
    """Requests for a regrade from the output of `gh issue list --json author,body,number,url`."""
    try:
        for one in json.loads(source.read_text(encoding="utf-8")):
            owner, body = Owner(student=one["author"]["login"]), one["body"].encode()
            yield HandedIn(owner, one["url"], partial(bytes, body), (one["number"],), asks=True)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as problem:
        raise UserError(
            f"{source} is not what `gh issue list --json author,body,number,url` writes: {problem}"
        ) from None


def _folder(source: Path, assignment: Assignment, pattern: re.Pattern[str] | None) -> Iterator[HandedIn]:
    """A folder of students' folders, archives and loose files, such as nbgrader's downloaded/SET/archive/."""
    inside = sorted(source.iterdir())
    loose = [path for path in inside if not path.is_dir()]
    found = find_submissions(source, assignment) if len(loose) < len(inside) or not loose else []
    homes = {one.home.name: one for one in found}
    for path in loose:
        yield from _loose(path, assignment.filename, pattern)
    for home in (path for path in inside if path.is_dir()):
        own, files = homes.get(home.name), 0
        for path in _files(home):
            files += 1
            owner = Owner(student=home.name if own else "")
            one = HandedIn(owner, str(path.relative_to(source)), partial(_plain, path, home))
            one = of_kind(one, path.name, assignment.filename)
            yield replace(one, named=own is not None and path == own.path)
        if own and own.path is None and (not files or own.status == "malformed"):
            yield HandedIn(Owner(student=home.name), home.name, refused=own.reason)


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; no link is followed."""
    for where, _, names in os.walk(folder):
        yield from (Path(where, name) for name in sorted(names))


def _loose(path: Path, wanted: str, pattern: re.Pattern[str] | None) -> Iterator[HandedIn]:
    """A file in the source folder itself: one student's by its name, or the archive of a class."""
    try:
        nobodys = not str(parse_name(path.name, pattern)[0])
    except Refusal:
        nobodys = False  # by_name says why
    if nobodys and path.suffix == ".zip":
        yield from in_archive(path, wanted, pattern)
    else:
        yield from by_name(path.name, partial(_plain, path, path.parent), wanted, pattern)


def _exchange(source: Path, assignment: Assignment) -> Iterator[HandedIn]:
    """The inbound folder of nbgrader's exchange, with folders USER+SET+TIME[+...].

    Every student may write there, so a folder owned by its USER counts before one that is not, then the
    latest.
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
        if not _missing(asks := home / "regrade.md"):
            place = f"{home.name}/{asks.name}"
            yield HandedIn(Owner(student=user), place, partial(_plain, asks, home), order, asks=True)


def _missing(path: Path) -> str:
    """Why there is no such file; "" if there is one. A student may have made its folder unreadable."""
    try:
        return "" if path.exists() or path.is_symlink() else f"no {path.name}"
    except OSError as problem:
        return f"its folder cannot be read: {problem.strerror}"


def _owner_note(home: Path, user: str) -> str:
    """A note where the folder belongs to another account: `nbgrader submit` writes under the student's."""
    try:
        owner = home.owner()
    except (KeyError, OSError):
        return ""
    return "" if owner == user else f"its folder belongs to {owner}, not to {user}"


def _plain(path: Path, inside: Path) -> bytes:
    """The bytes of a notebook or archive, which must lie in `inside`. Raises Refusal."""
    try:
        if path.suffix == ".zip":
            with open(path, "rb") as file:
                return at_most(file)
        return read_bytes(path, inside)
    except Malformed as problem:
        raise Refusal(str(problem)) from None
    except OSError as problem:
        raise Refusal(f"it cannot be read: {problem.strerror}") from None
