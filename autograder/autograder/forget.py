"""`autograder forget`: remove all that the grader wrote about one student.

Files that it did not write, such as the roster, are left alone and named if they mention the student.
"""

import csv
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any, cast

from autograder.csv_tables import csv_text
from autograder.discover import student_id
from autograder.grade import grading_lock
from autograder.gradebook import CourseGradebook, damaged, write_csv
from autograder.gradebook.changes import read_changes, write_changes
from autograder.results import write_atomic
from autograder.user_error import UserError

REPORTS = ("class_report.html", "similar", "oral")  # in the grades folder: one command makes each again
NOT_OURS = ("roster.csv", ".nbgrader.log")  # in the course folder: never changed, only named
REDACTED = b"(forgotten)"
LARGEST = 2**28  # bytes of the largest file that is searched


@dataclass
class Traces:
    """Where one student's data is.

    folders, files: removed whole. lines: files of which single lines are removed. rows: the student's
    submissions in the gradebook. beside: files that name the student and are left alone. unread: files that
    are too large to be searched.
    """

    student: str
    folders: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    lines: list[Path] = field(default_factory=list)
    rows: int = 0
    in_gradebook: bool = False
    beside: list[Path] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.folders or self.files or self.lines or self.in_gradebook)

    def described(self) -> list[str]:
        """One line for each thing that will be removed or left."""
        gradebook = [f"gradebook.db: the student and {self.rows} submissions"] if self.in_gradebook else []
        parts = [f"{path}: the lines that name {self.student}" for path in self.lines]
        left = [f"{path}: is left, and names {self.student}" for path in self.beside]
        left += [f"{path}: is left, too large to be searched" for path in self.unread]
        return [*(f"{path}/" for path in self.folders), *map(str, self.files), *gradebook, *parts, *left]


def traces_of(name: str, root: Path, out: Path, submissions: Path) -> Traces:
    """Find all data of a student, under the folder's name or the id made from it. Changes nothing.

    Raises UserError for a name that cannot be a folder's, and for a damaged gradebook.
    """
    if not name or "/" in name or name in (".", ".."):
        raise UserError(f"{name!r} is no student's name; give it as the folder in {submissions} has it")
    known = student_id(name)
    found = Traces(known)
    student_folders = [out / "feedback" / known, out / "autograded" / known, submissions / name]
    found.folders = [path for path in student_folders if path.is_dir()]
    found.files = sorted((out / "results").glob(f"*/{escape(known)}.json"))
    pattern = name_pattern(name, known)
    for path in sorted(_files_in(out)):
        if path in found.files or any(path.is_relative_to(folder) for folder in found.folders):
            continue
        if path.relative_to(out).parts[0] in REPORTS and _names(path, pattern):
            found.files.append(path)
        elif path.suffix in (".csv", ".jsonl") and _names(path, pattern):
            found.lines.append(path)
    found.lines += [path for path in sorted(submissions.glob("*.csv")) if _names(path, pattern)]
    places = [*(root / name for name in NOT_OURS), *_files_in(out), *_files_in(submissions)]
    for path in sorted({*places} - {*found.files, *found.lines, out / "gradebook.db"}):
        if not any(path.is_relative_to(folder) for folder in found.folders):
            found.beside += [path] if _names(path, pattern) else []
            found.unread += [path] if path.is_file() and path.stat().st_size > LARGEST else []
    if (out / "gradebook.db").exists():
        try:
            with closing(sqlite3.connect(f"file:{out / 'gradebook.db'}?mode=ro", uri=True)) as book:
                count = "select count(*) from submitted_assignment where student_id = ?"
                found.rows = book.execute(count, (known,)).fetchone()[0]
                entry = book.execute("select 1 from student where id = ?", (known,)).fetchone()
                found.in_gradebook = entry is not None
        except sqlite3.DatabaseError as problem:
            raise damaged(out / "gradebook.db", problem) from None
    return found


def forget(name: str, root: Path, out: Path, submissions: Path) -> list[Path]:
    """Remove what traces_of() finds. Returns the files that still name the student.

    The gradebook is vacuumed, so that no deleted rows stay in its free pages.
    Raises UserError while another run grades into `out`.
    """
    with grading_lock(out):
        found, changes = traces_of(name, root, out, submissions), read_changes(out)
        for one in changes:
            for part in (one.hours, one.entered, one.judged):
                part.pop(found.student, None)
        if changes:
            write_changes(out, changes)
        pattern = name_pattern(name, found.student)
        for folder in found.folders:
            if folder.is_symlink():
                folder.unlink()  # the folder that the link leads to is not this student's
            else:
                shutil.rmtree(folder)
        for path in found.files:
            path.unlink()
        if found.in_gradebook:
            with CourseGradebook(out) as book:
                cast(Any, book.gradebook).remove_student(found.student)
            with closing(sqlite3.connect(out / "gradebook.db")) as database:
                database.execute("vacuum")
        for path in found.lines:
            write_atomic(path, without_student(path, {name, found.student}, pattern))
        if (out / "gradebook.db").exists():
            with CourseGradebook(out) as book:
                write_csv(book.gradebook, out, out / "grades.csv")
    return found.beside


def without_student(path: Path, names: set[str], pattern: re.Pattern[bytes]) -> bytes:
    """A file without the student's lines; in other students' lines the name is replaced by REDACTED."""
    if path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        kept = csv_text(row for row in rows if not names & set(row)).encode()
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        kept = b"".join(line for line in lines if _student_of(line) not in names)
    return pattern.sub(REDACTED, kept)


def name_pattern(*names: str) -> re.Pattern[bytes]:
    """A pattern that finds these names in bytes, but not inside a longer word or another hyphenated name."""
    forms = {form for name in names for form in (name.encode("utf-8", "surrogateescape"), _escaped(name))}
    choice = b"|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.compile(rb"(?<![0-9A-Za-z_\x80-\xff-])(?:" + choice + rb")(?![0-9A-Za-z_\x80-\xff-])")


def _escaped(name: str) -> bytes:
    """The name as it is written in JSON, where non-ASCII characters are escaped."""
    return json.dumps(name)[1:-1].encode()


def _files_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _names(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether a file's name or contents name the student.

    The contents of a file above LARGEST are not searched: a sparse file can have any size.
    """
    if not path.is_file():
        return False
    if pattern.search(path.name.encode("utf-8", "surrogateescape")):
        return True
    return path.stat().st_size <= LARGEST and pattern.search(path.read_bytes()) is not None


def _student_of(line: bytes) -> Any:
    """The student that a line of the log is about; None where it is about nobody."""
    try:
        return json.loads(line)["student"]
    except (ValueError, LookupError, TypeError):
        return None
