"""Find the submissions in a folder.

They are DIR/<student>/ps04_matmul.ipynb or DIR/<student>/ps04/ps04_matmul.ipynb.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment
from autograder.user_error import UserError

MAX_ID, MAX_ID_BYTES = 100, 200  # of an id: with an ending it must be a file's name, of 255 bytes at most
KEPT = 20  # characters of a name that is too long: each may take 8 bytes, and 34 more tell it from others


@dataclass(frozen=True)
class Submission:
    """student: the id, made of the folder's name. home: that folder.

    path: the notebook, or None with `status` ("missing", "malformed") and `reason` saying why there is none.
    """

    student: str
    home: Path
    path: Path | None = None
    status: str = ""
    reason: str = ""


def find_submissions(folder: str | Path, assignment: Assignment) -> list[Submission]:
    """All student folders, sorted by id. What is wrong with one of them is told in its Submission.

    Raises UserError if the folder is missing, cannot be read or holds no student folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"no submissions folder {folder}; expected {folder}/<student>/{assignment.filename}")
    try:
        homes = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    except OSError as problem:
        raise UserError(f"cannot read the submissions folder {folder}: {problem.strerror}") from None
    if not homes:
        raise UserError(
            f"{folder} holds no student folders; expected {folder}/<student>/{assignment.filename}"
        )
    found = [_submission(home, assignment) for home in homes]
    return sorted(found, key=lambda one: one.student)


def _submission(home: Path, assignment: Assignment) -> Submission:
    student = student_id(home.name)
    try:
        for path in (home / assignment.name / assignment.filename, home / assignment.filename):
            if path.exists() or path.is_symlink():
                return Submission(student, home, path)
        others = sorted(path.name for part in (home, home / assignment.name) for path in part.glob("*.ipynb"))
    except OSError as problem:
        return Submission(student, home, None, "malformed", f"the folder cannot be read: {problem.strerror}")
    found = f"; found {', '.join(map(written_out, others[:3]))}" if others else ""
    return Submission(student, home, None, "missing", f"no {assignment.filename}{found}")


def student_id(name: str) -> str:
    """The id under which a folder's name stands everywhere: gradebook, table, grades.csv, files, pages.

    It is the name itself, unless that is too long or holds what cannot be shown (`written_out`). Two names
    never have one id: "~#" stands in no written-out name where a character begins.
    """
    text = written_out(name)
    if len(text) <= MAX_ID and len(text.encode()) <= MAX_ID_BYTES:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{written_out(name[:KEPT])}~#{digest[:32]}"


def written_out(name: str) -> str:
    """A file's name in characters that no terminal, page or table stumbles over; two names never look alike.

    A byte that is no UTF-8 becomes ~xNN, an unprintable character and a space at either end ~uNNNNNN,
    and ~ becomes ~~. Unprintable is also what turns a line around, and half of a character pair.
    """
    last = len(name) - 1
    return "".join(_character(one, at_end=at in (0, last)) for at, one in enumerate(name))


def _character(one: str, at_end: bool) -> str:
    if one == "~":
        return "~~"
    if "\udc80" <= one <= "\udcff":  # how Python's os.fsdecode has a byte that is no UTF-8
        return f"~x{ord(one) - 0xDC00:02x}"
    return one if one.isprintable() and not (one == " " and at_end) else f"~u{ord(one):06x}"
