"""Find the submissions in a folder.

They are DIR/<student>/ps04_matmul.ipynb or DIR/<student>/ps04/ps04_matmul.ipynb.
"""

from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment
from autograder.user_error import UserError

MAX_ID = 100


@dataclass(frozen=True)
class Submission:
    """student: the folder's name. path: the notebook, or None with `reason` saying why there is none."""

    student: str
    path: Path | None
    folder: Path
    reason: str = ""


def find_submissions(folder: str | Path, assignment: Assignment) -> list[Submission]:
    """All student folders, sorted by name.

    Raises UserError if the folder is missing or holds no student folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"no submissions folder {folder}; expected {folder}/<student>/{assignment.filename}")
    students = sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))
    )
    if not students:
        raise UserError(
            f"{folder} holds no student folders; expected {folder}/<student>/{assignment.filename}"
        )
    return [_submission(path, assignment) for path in students]


def _submission(folder: Path, assignment: Assignment) -> Submission:
    name = folder.name
    if len(name) > MAX_ID or not name.isprintable():
        return Submission(
            name, None, folder, f"the student id has unprintable characters or more than {MAX_ID}"
        )
    for path in (folder / assignment.name / assignment.filename, folder / assignment.filename):
        if path.exists() or path.is_symlink():
            return Submission(name, path, path.parent)
    others = sorted(
        path.name for path in (*folder.glob("*.ipynb"), *(folder / assignment.name).glob("*.ipynb"))
    )
    found = f"; found {', '.join(others[:3])}" if others else ""
    return Submission(name, None, folder, f"no {assignment.filename}{found}")
