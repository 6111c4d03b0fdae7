"""What was decided about each submission, one JSON file each.

It is the memory that lets a second run skip what is already graded.
"""

import contextlib
import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import autograder
import warplab
from autograder.csv_tables import csv_text

Attempts = list[tuple[str, int]]
"""The contents that a student was judged on so far, in order: (hash of the notebook, its round of inputs)."""


class StoredRecord(TypedDict):
    """What was decided about one submission. key: hash of all that it depends on.

    verdict: a Verdict as a dict. attempts: all of this student's; attempt: which of them this is, from 1 on,
    or 0 for what was not judged. submission: the name of this one in log, table and feedback page. page: of
    what a person has entered, when the feedback page was written.
    """

    student: str
    assignment: str
    key: str
    status: str
    reason: str
    notes: list[str]
    isolation: str
    verdict: dict[str, Any] | None
    attempts: NotRequired[Attempts]
    attempt: NotRequired[int]
    submission: NotRequired[str]
    page: NotRequired[str]


class Results:
    """The folder OUT/results/<assignment>/. Files appear whole or not at all."""

    def __init__(self, out: str | Path, assignment: str) -> None:
        self.folder = Path(out) / "results" / assignment

    def read(self, student: str) -> StoredRecord | None:
        """The stored record, or None. A damaged file counts as none: the submission is graded again."""
        record = read_record(self._file(student))
        return record if record and record["student"] == student else None

    def write(self, student: str, record: StoredRecord) -> None:
        """Store a record at once.

        Call it after the gradebook has the grade, so that a stop in between only repeats work.
        """
        write_atomic(self._file(student), (json.dumps(record, indent=1) + "\n").encode())

    def all(self) -> dict[str, StoredRecord]:
        """{student: record} of everything stored."""
        records = map(read_record, sorted(self.folder.glob("*.json")))
        return {record["student"]: record for record in records if record}

    def next_round(self) -> int:
        """The first round of inputs that nobody has been judged on."""
        rounds = (drawn for record in self.all().values() for _, drawn in record.get("attempts", ()))
        return 1 + max(rounds, default=-1)

    def _file(self, student: str) -> Path:
        return self.folder / f"{student}.json"


def with_attempt(before: Attempts, content: str, fresh: int) -> tuple[Attempts, int]:
    """(attempts with this content among them, its number from 1 on).

    What was judged before keeps its round, so that it gets the same grade; anything else gets round `fresh`.
    """
    for number, (known, _) in enumerate(before, 1):
        if known == content:
            return before, number
    return [*before, (content, fresh)], len(before) + 1


def seed_of_round(seed: int, number: int) -> int:
    """The seed of one round of inputs, a hash of the folder's own.

    A machine that judges gets it: who knows one round's knows nothing of another's.
    """
    return int(key_of(seed, number)[:15], 16)


def read_record(path: Path) -> StoredRecord | None:
    """One stored record, or None if the file is missing or damaged."""
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        whole = {"student", "key", "status", "verdict"} <= record.keys()
    except (OSError, ValueError, AttributeError):  # the last: it is JSON, but no object
        return None
    return record if whole else None


def write_atomic(path: Path, data: bytes) -> None:
    """Write bytes so that the file is old or new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/null stays a device
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)  # it could be a link, in a folder of a student's
        fresh.write_bytes(data)
        os.replace(fresh, path)
    except OSError as problem:
        problem.filename, problem.filename2 = str(path), None  # what a person knows
        raise
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def write_rows(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Rows as a CSV file, old or new."""
    write_atomic(path, csv_text(rows).encode("utf-8", "replace"))


def key_of(*parts: object) -> str:
    """One hash over everything that can change a grade; a part that is not bytes counts as its text."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def course_version() -> str:
    """Hash of what makes a grade and its words.

    That is the Python of warplab and autograder, hints, hardware facts and page templates.
    """
    digest = hashlib.sha256()
    for base in map(Path, (*warplab.__path__, *autograder.__path__)):
        for path in sorted(path for path in base.rglob("*") if path.suffix in (".py", ".yml", ".j2", ".cuh")):
            digest.update(str(path.relative_to(base)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def secret_seed(out: str | Path) -> int:
    """The seed of this grading folder, drawn once, so that a second run gives the same grades.

    It is kept in a file that only its owner can read.
    """
    file = Path(out) / ".seed"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, f"{secrets.randbits(63)}\n".encode())
        except OSError:  # a full disk, and an empty file would stand in the way of every later run
            file.unlink()
            raise
        finally:
            os.close(handle)
    return int(file.read_text())
