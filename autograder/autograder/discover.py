"""Find the submissions in a folder.

They are DIR/<student>/ps04_matmul.ipynb or DIR/<student>/ps04/ps04_matmul.ipynb.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment
from autograder.user_error import UserError

MAX_ID, MAX_ID_BYTES = 100, 200  # characters, bytes of an id: with a suffix it must fit a 255-byte file name
KEPT = 20  # characters kept of a longer name (up to 8 bytes each); 34 more characters are its hash


@dataclass(frozen=True)
class Submission:
    """One student's submission. student: the id, made from the folder's name. home: that folder.

    path: the notebook, or None; then `status` ("missing", "malformed") and `reason` say why there is none.
    """

    student: str
    home: Path
    path: Path | None = None
    status: str = ""
    reason: str = ""


def find_submissions(folder: str | Path, assignment: Assignment) -> list[Submission]:
    """A Submission for each student folder, sorted by id; status and reason describe its defect.

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
    """A student's id in the gradebook, tables, grades.csv, file names and pages, from the folder's name.

    It is the name itself, with unprintable characters escaped (`written_out`); a name that is too long is
    cut and gets a hash. Two names never share an id: no escape of `written_out` begins with "~#".
    """
    text = written_out(name)
    if len(text) <= MAX_ID and len(text.encode()) <= MAX_ID_BYTES:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{written_out(name[:KEPT])}~#{digest[:32]}"


def written_out(name: str) -> str:
    """A file's name with all characters printable, by an escape that can be undone.

    A byte that is not UTF-8 becomes ~xNN; an unprintable character, or a space at either end, ~uNNNNNN; and
    ~ becomes ~~. Unprintable includes bidirectional controls and lone surrogates.
    """
    last = len(name) - 1
    return "".join(_character(one, at_end=at in (0, last)) for at, one in enumerate(name))


def _character(one: str, at_end: bool) -> str:
    if one == "~":
        return "~~"
    if "\udc80" <= one <= "\udcff":  # os.fsdecode's surrogate escape for a byte that is not UTF-8
        return f"~x{ord(one) - 0xDC00:02x}"
    return one if one.isprintable() and not (one == " " and at_end) else f"~u{ord(one):06x}"
