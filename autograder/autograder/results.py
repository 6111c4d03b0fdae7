"""The result of each submission, one JSON file each, by which a later run skips what is already graded."""

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
"""The notebooks of a student that were judged so far, in order: (hash of the notebook, round of inputs)."""


class StoredRecord(TypedDict):
    """The result of one submission. key: hash of all that the result depends on.

    verdict: a Verdict as a dict. attempts: all of this student's; attempt: the number of this one, from 1 on,
    0 if it was not judged. submission: its name in log, table and feedback page. page: hash of what a person
    had entered when the feedback page was written.
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
        """Store a record, replacing an older one.

        Call it after the gradebook has the grade: a stop in between then only makes the next run repeat work.
        """
        write_atomic(self._file(student), (json.dumps(record, indent=1) + "\n").encode())

    def all(self) -> dict[str, StoredRecord]:
        """{student: record} of all stored records."""
        records = map(read_record, sorted(self.folder.glob("*.json")))
        return {record["student"]: record for record in records if record}

    def next_round(self) -> int:
        """The lowest round of inputs that nobody has been judged on."""
        rounds = (drawn for record in self.all().values() for _, drawn in record.get("attempts", ()))
        return 1 + max(rounds, default=-1)

    def _file(self, student: str) -> Path:
        return self.folder / f"{student}.json"


def with_attempt(before: Attempts, content: str, fresh: int) -> tuple[Attempts, int]:
    """(attempts including this notebook, its number from 1 on). content: the notebook's hash.

    A notebook that was judged before keeps its round, so that it gets the same grade; a new one gets `fresh`.
    """
    for number, (known, _) in enumerate(before, 1):
        if known == content:
            return before, number
    return [*before, (content, fresh)], len(before) + 1


def seed_of_round(seed: int, number: int) -> int:
    """The seed of one round of inputs: a hash of the folder's seed and the round's number.

    Machines that judge get only this: the seed of one round does not reveal another's.
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
    """Write a file by renaming a complete temporary one onto it: readers see the old or the new contents.

    Raises OSError that names `path`, not the temporary file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/null stays a device
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)  # in a student's folder it could be a link
        fresh.write_bytes(data)
        os.replace(fresh, path)
    except OSError as problem:
        problem.filename, problem.filename2 = str(path), None  # the name that the user knows
        raise
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def write_rows(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as a CSV file, atomically."""
    write_atomic(path, csv_text(rows).encode("utf-8", "replace"))


def key_of(*parts: object) -> str:
    """One SHA-256 over all parts, each with its length; a part that is not bytes counts as its str()."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def course_version() -> str:
    """Hash of all code and data that a grade and its feedback depend on.

    These are the Python files, hints, hardware facts and page templates of warplab and autograder.
    """
    digest = hashlib.sha256()
    for base in map(Path, (*warplab.__path__, *autograder.__path__)):
        for path in sorted(path for path in base.rglob("*") if path.suffix in (".py", ".yml", ".j2", ".cuh")):
            digest.update(str(path.relative_to(base)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def secret_seed(out: str | Path) -> int:
    """The seed of a grades folder, drawn once and kept in OUT/.seed, which only its owner can read.

    It is kept so that a second run gives the same grades.
    """
    file = Path(out) / ".seed"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, f"{secrets.randbits(63)}\n".encode())
        except OSError:  # a full disk; an empty file would make every later run fail
            file.unlink()
            raise
        finally:
            os.close(handle)
    return int(file.read_text())
