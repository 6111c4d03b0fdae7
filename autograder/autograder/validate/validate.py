"""Reads one submitted notebook, finds its defects, and restores what the student must not change."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from autograder.layout import Assignment, NotebookDocument
from autograder.reader.contents import HandedInCell, NoNotebook, cells_of, shown
from autograder.user_error import first_few
from autograder.validate.restore import Defect, restore

MAX_BYTES = 20 * 2**20
TOLD = 5  # defects listed in the message


class Malformed(Exception):
    """The notebook cannot be graded; `defects` lists why. The submission gets no score, rather than 0."""

    def __init__(self, defects: Iterable[Defect]) -> None:
        self.defects = tuple(defects)
        fatal = [str(defect) for defect in self.defects if defect.fatal]
        super().__init__(first_few(fatal, TOLD, between="; "))


@dataclass(frozen=True)
class Checked:
    """A notebook that can be graded: restored, without outputs. notes: the defects that were put right.

    idle: ids of given cells that need not run, as no cell uses their names. cuda_cpp: strings in the
    student's code that contain CUDA C++ kernels, the last one first. Both are empty unless a reader filled
    them in.
    """

    notebook: NotebookDocument
    notes: tuple[Defect, ...]
    idle: frozenset[str] = frozenset()
    cuda_cpp: tuple[str, ...] = ()


def check_file(path: str | Path, assignment: Assignment, inside: Path | None = None) -> Checked:
    """Check one trusted file against a released Assignment, in this process.

    Raises Malformed with all fatal defects. inside: as in read_bytes(). Submissions are not trusted and are
    read by autograder.judge.reading in a sandboxed process.
    """
    try:
        cells = cells_of(read_bytes(Path(path), inside))
    except NoNotebook as problem:
        raise Malformed([Defect(problem.code, str(problem))]) from None
    return checked(cells, assignment)


def checked(cells: Sequence[HandedInCell], assignment: Assignment) -> Checked:
    """Check a notebook's cells against a released Assignment. Raises Malformed with all fatal defects."""
    notebook, defects = restore(cells, assignment)
    if any(defect.fatal for defect in defects):
        raise Malformed(defects)
    return Checked(notebook, tuple(defects))


def read_bytes(path: Path, inside: Path | None = None) -> bytes:
    """The bytes of a regular file of at most MAX_BYTES. Raises Malformed.

    inside: the submission's folder, not a link itself; the file must be in it with all links resolved
    (default: not checked).
    """
    name = shown(path.name, 100)
    try:
        if not path.exists() and not path.is_symlink():
            _refuse("not-found", f"there is no file {name}")
        state = path.stat()
        if inside is not None and not path.resolve().is_relative_to(inside.parent.resolve() / inside.name):
            _refuse("link-outside", f"{name} is a link to a place outside the submission")
        if not stat.S_ISREG(state.st_mode):
            _refuse("not-a-file", f"{name} is not a regular file")
        with open(path, "rb", opener=_open_nonblocking) as file:
            now = os.fstat(file.fileno())
            if (now.st_dev, now.st_ino, now.st_mode) != (state.st_dev, state.st_ino, state.st_mode):
                _refuse("changed", f"{name} was replaced while it was read")
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        _refuse("unreadable", f"{name} cannot be read: {problem.strerror}")
    if len(data) > MAX_BYTES:
        size = f"{state.st_size / 2**20:.1f} MiB, the limit is {MAX_BYTES // 2**20}"
        _refuse("too-large", f"the file has {size}: clear all outputs and save again")
    return data


def _open_nonblocking(path: str, flags: int) -> int:
    """An opener that does not block if the file has meanwhile been replaced by a named pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _refuse(code: str, text: str) -> NoReturn:
    raise Malformed([Defect(code, text)]) from None
