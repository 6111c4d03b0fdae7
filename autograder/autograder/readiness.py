"""`autograder doctor --class`: whether this machine is ready to grade this class.

No text of a student's is read: files are counted and weighed.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import re
import resource
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from rich.console import Console
from rich.table import Table

import warplab
from autograder.discover import Submission, find_submissions
from autograder.grade import only_one
from autograder.gradebook import CourseGradebook
from autograder.layout import Assignment, assignment_names, load_assignment
from autograder.release import release
from autograder.sandbox.limits import Limits
from autograder.user_error import UserError

KIB_A_STUDENT = 1024  # for one set; two submissions of ps04 left 850 in all, the gradebook included
DESCRIPTORS = 1024  # what a shell usually allows, and what grading is tested with
LOCK = Path("autograder", "constraints.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\n]+)(?: *; *(.+))?$", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    """One thing that grading needs. state: "ready", "note" (grading goes ahead, know this) or "not ready"."""

    what: str
    state: str
    detail: str = ""


def check_class(
    root: Path, names: list[str], submissions: Path, out: Path, limits: Limits, jobs: int
) -> list[Check]:
    """All checks, for the problem sets `names` (default: those that somebody handed in)."""
    found = [*_released(root, names), *_handed_in(root, names, submissions)]
    try:
        students = len([home for home in submissions.iterdir() if home.is_dir() and home.name[0] not in "._"])
    except OSError:
        students = 0
    found += [_out(out), *_gradebook(root, out), _seed(out), _disk(out, students)]
    found += [_memory(limits, jobs), _descriptors(), *_versions(root), *_gpu(root, names)]
    return found


def _released(root: Path, names: list[str]) -> Iterator[Check]:
    try:
        stale = [one.name for one in release(root, names, check=True) if one.state == "drift"]
    except UserError as problem:
        yield Check("released exercises", "not ready", str(problem))
        return
    text = f"{', '.join(stale)}: not what solutions/ gives; run `autograder release`"
    yield Check("released exercises", "not ready" if stale else "ready", text if stale else "")


def _handed_in(root: Path, names: list[str], submissions: Path) -> Iterator[Check]:
    for name in names or assignment_names(root):
        assignment = load_assignment(root, name)
        try:
            found = find_submissions(submissions, assignment)
        except UserError as problem:
            yield Check("submissions", "not ready", str(problem))
            return
        if names or any(one.path for one in found):
            yield _class_of(assignment, found)


def _class_of(assignment: Assignment, found: list[Submission]) -> Check:
    absent = [one.student for one in found if one.path is None]
    written_out = [one.student for one in found if one.student != one.home.name]
    parts = [f"{len(found) - len(absent)} of {len(found)} students"]
    if absent:
        parts.append(f"none of {_some(absent)}")
    if written_out:
        parts.append(f"folders whose names stand otherwise in the gradebook: {_some(written_out)}")
    state = "note" if absent or written_out else "ready"
    return Check(f"submissions of {assignment.name}", state, "; ".join(parts))


def _out(out: Path) -> Check:
    what = f"folder {out.name}/"
    try:
        out.mkdir(parents=True, exist_ok=True)
        with only_one(out):
            probe = out / ".probe"
            probe.write_bytes(b"x")
            probe.unlink()
    except UserError as problem:
        return Check(what, "not ready", str(problem))
    except OSError as problem:
        return Check(what, "not ready", f"cannot write there: {problem.strerror}; choose another --out")
    return Check(what, "ready")


def _gradebook(root: Path, out: Path) -> Iterator[Check]:
    file = out / "gradebook.db"
    if not file.exists():
        yield Check("gradebook", "ready", "none yet: the first run makes it")
        return
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as book:
            state = book.execute("pragma integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as problem:
        state = str(problem)
    if state != "ok":
        yield Check("gradebook", "not ready", f"{file} is damaged ({state}); bring back your last copy of it")
        return
    with CourseGradebook(out) as book:
        known: Any = book.gradebook.assignments
        entered: set[str] = {one.name for one in known}
        changed = [
            name
            for name in sorted(entered & {*assignment_names(root)})
            if not book.knows(load_assignment(root, name))
        ]
    text = f"{', '.join(changed)}: released with other cells than when they were graded; use a new --out"
    yield Check("gradebook", "not ready" if changed else "ready", text if changed else "")


def _seed(out: Path) -> Check:
    file = out / ".seed"
    if not file.exists():
        return Check("seed of the hidden inputs", "ready", "none yet: drawn by the first run")
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        return Check("seed of the hidden inputs", "not ready", f"others can read {file}: chmod 600 {file}")
    try:
        int(file.read_text())
    except ValueError:
        return Check("seed of the hidden inputs", "not ready", f"{file} holds no number; bring back its copy")
    return Check("seed of the hidden inputs", "ready", "only you can read it")


def _disk(out: Path, students: int) -> Check:
    free = shutil.disk_usage(out if out.exists() else out.parent).free
    need = students * KIB_A_STUDENT * 2**10
    text = f"{free / 2**30:.1f} GiB free, {need / 2**30:.2f} GiB for {students} students and one set"
    return Check("disk", "ready" if free > 2 * need else "not ready", text)


def _memory(limits: Limits, jobs: int) -> Check:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
        free = int(re.findall(r"MemAvailable: +(\d+)", told)[0]) / 2**10
    except (OSError, IndexError):
        pass
    most = jobs * limits.memory_mib
    text = f"{free:,.0f} MiB available; {jobs} submissions at a time may take {most:,} MiB"
    advice = f"; --jobs {max(1, math.floor(free / limits.memory_mib))} stays below" if free < most else ""
    return Check("memory", "note" if advice else "ready", text + advice)


def _descriptors() -> Check:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = allowed != resource.RLIM_INFINITY and allowed < DESCRIPTORS
    advice = f"{allowed} allowed; say ulimit -n {DESCRIPTORS} first"
    return Check("open files", "not ready" if few else "ready", advice if few else "")


def _versions(root: Path) -> Iterator[Check]:
    """What is installed, against the lock: another compiler makes other PTX, and so other counts."""
    lock = root / LOCK
    if not lock.exists():
        yield Check("versions", "note", f"no {LOCK} here to compare with; Python {platform.python_version()}")
        return
    other: list[str] = []
    for name, pinned, marker in PIN.findall(lock.read_text(encoding="utf-8")):
        if marker and not Marker(marker).evaluate():
            continue
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that grading does not need
        if installed.split("+")[0] != pinned.split("+")[0]:
            other.append(f"{name} {installed}, not {pinned}")
    text = f"{_some(other)}: run `make venv`, or grade into a fresh --out folder"
    yield Check("versions", "not ready" if other else "ready", text if other else f"as in {LOCK}")


def _gpu(root: Path, names: list[str]) -> Iterator[Check]:
    device = warplab.device()
    if device.kind == "cuda":
        yield Check("GPU", "ready", device.name)
        return
    sets = [load_assignment(root, name) for name in names or assignment_names(root)]
    timed = {one.name: sum(cell.points for cell in one.graded() if cell.rubric == "time") for one in sets}
    open_ = ", ".join(f"{points:g} of {name}" for name, points in timed.items() if points)
    if open_:
        yield Check("GPU", "note", f"none: points for time stay ungraded, which is not zero ({open_})")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def show_class(console: Console, checks: list[Check]) -> bool:
    """Print the table. Returns whether nothing is "not ready"."""
    table = Table(title="Ready to grade this class?", title_justify="left")
    for column in ("of", "state", "detail"):
        table.add_column(column, overflow="fold")
    for check in checks:
        table.add_row(
            check.what, check.state.upper() if check.state == "not ready" else check.state, check.detail
        )
    console.print(table)
    return all(check.state != "not ready" for check in checks)
