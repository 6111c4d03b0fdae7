"""What was decided about each submission, one JSON file each: the memory that lets a second run skip what is already graded."""

import hashlib
import json
import os
import secrets
from pathlib import Path

import autograder
import warplab


class Results:
    """The folder OUT/results/<assignment>/. Files appear whole or not at all."""

    def __init__(self, out, assignment):
        self.folder = Path(out) / "results" / assignment

    def read(self, student):
        """The stored record, or None. A damaged file counts as none: the submission is graded again."""
        record = read_record(self._file(student))
        return record if record and record["student"] == student else None

    def write(self, student, record):
        """Store a record at once; call it after the gradebook has the grade, so that a stop in between only repeats work."""
        write_atomic(self._file(student), (json.dumps(record, indent=1) + "\n").encode())

    def all(self):
        """{student: record} of everything stored."""
        records = map(read_record, sorted(self.folder.glob("*.json")))
        return {record["student"]: record for record in records if record}

    def _file(self, student):
        return self.folder / f"{student}.json"


def read_record(path):
    """One stored record, or None if the file is missing or damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and {"student", "key", "status", "verdict"} <= record.keys() else None


def write_atomic(path, data):
    """Write bytes so that the file is old or new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new"[-200:])
    fresh.write_bytes(data)
    os.replace(fresh, path)


def key_of(*parts):
    """One hash over everything that can change a grade; each part is bytes or text."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def course_version():
    """Hash of what makes a grade and its words: the Python of warplab and autograder, hints, hardware facts and page templates."""
    digest = hashlib.sha256()
    for package in (warplab, autograder):
        base = Path(package.__file__).parent
        files = {*base.rglob("*"), *base.glob("_specs/*")}  # the second is a link, which rglob does not follow
        for path in sorted(path for path in files if path.suffix in (".py", ".yml", ".j2")):
            digest.update(str(path.relative_to(base)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def secret_seed(out):
    """The seed of this grading folder: drawn once, kept readable for its owner only, so that a second run gives the same grades."""
    file = Path(out) / ".seed"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(handle, f"{secrets.randbits(63)}\n".encode())
        os.close(handle)
    return int(file.read_text())
