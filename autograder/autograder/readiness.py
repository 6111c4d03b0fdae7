"""`autograder doctor --class`: whether this machine is ready to grade this class.

Submitted notebooks are not read, only counted.
"""

import contextlib
import importlib.metadata
import math
import os
import platform
import re
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from packaging.markers import Marker
from rich.console import Console

import warplab
from autograder.discover import find_submissions
from autograder.grade import grading_lock
from autograder.gradebook import CourseGradebook
from autograder.layout import assignment_names, load_assignment
from autograder.release.release import release
from autograder.sample_class.build import submission
from autograder.sample_class.run import SEED, launcher_for_our_own
from autograder.sandbox.limits import Limits
from autograder.user_error import UserError, first_few, tell_table
from autograder.workers.commission import Conditions
from autograder.workers.machine_judge import MachineJudge
from warplab.tasks.rubric import explained_by

KIB_A_STUDENT = 1024  # disk for one set; two submissions of ps04 took 850 KiB, the gradebook included
DESCRIPTORS = 1024  # open files: a shell's usual limit, and what grading is tested with
SLOW = "grade when nothing else runs here, with fewer Grade.jobs, or with a larger Grade.time_limit"
LOCK = Path("autograder", "constraints.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\n]+)(?: *; *(.+))?$", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    """One thing that grading needs. state: "ready", "note" (grading can start all the same), "not ready"."""

    what: str
    state: str
    detail: str = ""


def check_class(
    root: Path, names: list[str], submissions: Path, out: Path, limits: Limits, jobs: int
) -> list[Check]:
    """Run all checks for the problem sets `names` (default: those that somebody handed in).

    limits, jobs: what one submission may use, and how many are graded at a time.
    """
    try:
        students = len([home for home in submissions.iterdir() if home.is_dir() and home.name[0] not in "._"])
    except OSError:
        students = 0
    checks = [_released(root, names), *_handed_in(root, names, submissions), _out(out), _gradebook(root, out)]
    checks += [_seed(out), _disk(out, students), _memory(limits, jobs), _processors(jobs), _descriptors()]
    checks += [_versions(root)]
    right = references(root, names, limits, jobs) if checks[0].state == "ready" else ()
    return [*checks, *_gpu(root, names), *right]


def _check(what: str, problem: str = "", detail: str = "", state: str = "not ready") -> Check:
    """A Check with `state` where there is a problem; else "ready", with `detail`."""
    return Check(what, state, problem) if problem else Check(what, "ready", detail)


def _released(root: Path, names: list[str]) -> Check:
    try:
        stale = [one.name for one in release(root, names, check=True) if one.state == "drift"]
    except UserError as problem:
        return _check("released exercises", str(problem))
    told = f"{', '.join(stale)}: not what solutions/ gives; run `autograder release`" if stale else ""
    return _check("released exercises", told)


def _handed_in(root: Path, names: list[str], submissions: Path) -> Iterator[Check]:
    for name in names or assignment_names(root):
        try:
            found = find_submissions(submissions, load_assignment(root, name))
        except UserError as problem:
            yield _check("submissions", str(problem))
            return
        absent = [one.student for one in found if one.path is None]
        other = [one.student for one in found if one.student != one.home.name]
        told = f"{len(found) - len(absent)} of {len(found)} students"
        more = f"; none of {first_few(absent)}" if absent else ""
        more += f"; folders whose names stand otherwise in the gradebook: {first_few(other)}" if other else ""
        if names or len(absent) < len(found):
            yield _check(f"submissions of {name}", told + more if more else "", told, "note")


def _out(out: Path) -> Check:
    what = f"folder {out.name}/"
    try:
        out.mkdir(parents=True, exist_ok=True)
        with grading_lock(out), tempfile.TemporaryFile(dir=out) as probe:
            probe.write(b"x")
    except UserError as problem:
        return _check(what, str(problem))
    except OSError as problem:
        return _check(what, f"cannot write there: {problem.strerror}; choose another --out")
    return _check(what)


def _gradebook(root: Path, out: Path) -> Check:
    file = out / "gradebook.db"
    if not file.exists():
        return _check("gradebook", detail="none yet: the first run makes it")
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as book:
            state = book.execute("pragma integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as problem:
        state = str(problem)
    if state != "ok":
        return _check("gradebook", f"{file} is damaged ({state}); bring back your last copy of it")
    with CourseGradebook(out) as book:
        known: Any = book.gradebook.assignments
        here = sorted({one.name for one in known} & {*assignment_names(root)})
        changed = [name for name in here if not book.knows(load_assignment(root, name))]
    told = f"{', '.join(changed)}: released with other cells than when they were graded; use a new --out"
    return _check("gradebook", told if changed else "")


def _seed(out: Path) -> Check:
    what, file = "seed of the hidden inputs", out / ".seed"
    if not file.exists():
        return _check(what, detail="none yet: drawn by the first run")
    if file.stat().st_mode & 0o077:
        return _check(what, f"others can read {file}: chmod 600 {file}")
    held = file.read_text().strip().isdecimal()
    return _check(
        what, "" if held else f"{file} holds no number; bring back its copy", "only you can read it"
    )


def _disk(out: Path, students: int) -> Check:
    free = shutil.disk_usage(out if out.exists() else out.parent).free
    need = students * KIB_A_STUDENT * 2**10
    told = f"{free / 2**30:.1f} GiB free, {need / 2**30:.2f} GiB for one set; students: {students}"
    return _check("disk", "" if free > 2 * need else told, told)


def _memory(limits: Limits, jobs: int) -> Check:
    free, most = psutil.virtual_memory().available / 2**20, jobs * limits.memory_mib
    told = f"{free:,.0f} MiB available; {jobs} submissions at a time may take {most:,} MiB"
    fewer = f"{told}; Grade.jobs = {max(1, int(free / limits.memory_mib))} stays below"
    return _check("memory", fewer if free < most else "", told, "note")


def _processors(jobs: int) -> Check:
    """Limits are in wall-clock time, so other processes on a busy machine can cost right answers points."""
    busy, count = psutil.getloadavg()[0], os.cpu_count() or 1
    told = f"{busy:.1f} processes run or wait for {count} processors; {SLOW}"
    return _check(
        "processors", told if busy > count else "", f"{count}, for {jobs} submissions at a time", "note"
    )


def _descriptors() -> Check:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = allowed != resource.RLIM_INFINITY and allowed < DESCRIPTORS
    return _check("open files", f"{allowed} allowed; say ulimit -n {DESCRIPTORS} first" if few else "")


def _versions(root: Path) -> Check:
    """Compare installed packages with the lock file: another compiler makes other PTX, so other counts."""
    lock = root / LOCK
    if not lock.exists():
        told = f"no {LOCK} here to compare with; Python {platform.python_version()}"
        return _check("versions", told, state="note")
    other: list[str] = []
    for name, pinned, marker in PIN.findall(lock.read_text(encoding="utf-8")):
        # a package of an extra that grading does not need may be missing
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            here = importlib.metadata.version(name)
            if (not marker or Marker(marker).evaluate()) and here.split("+")[0] != pinned.split("+")[0]:
                other.append(f"{name} {here}, not {pinned}")
    told = f"{first_few(other)}: run `make venv`, or grade into a fresh --out folder"
    return _check("versions", told if other else "", f"as in {LOCK}")


def _gpu(root: Path, names: list[str]) -> Iterator[Check]:
    device = warplab.device()
    if device.kind == "cuda":
        yield _check("GPU", detail=device.name)
        return
    sets = [load_assignment(root, name) for name in names or assignment_names(root)]
    timed = {one.name: sum(cell.points for cell in one.graded() if cell.rubric == "time") for one in sets}
    open_ = ", ".join(f"{points:g} of {name}" for name, points in timed.items() if points)
    if open_:
        yield Check("GPU", "note", f"none: points for time stay ungraded, which is not zero ({open_})")


def references(root: Path, names: list[str], limits: Limits, jobs: int) -> Iterator[Check]:
    """Grade the answers in solutions/ like a student's: they must get all points that a machine can give."""
    judge = MachineJudge(launcher_for_our_own())

    def graded(name: str) -> Check:
        conditions = Conditions("", "", load_assignment(root, name), SEED, limits)
        ruling = judge.rule(conditions, submission(root, name, {"start": "solution"}, "reference"))
        if ruling.verdict is None:
            return _check(f"right answers to {name}", ruling.reason)
        cells = ruling.verdict.cells.values()
        lines = [line for cell in cells for line in cell.lines if line["state"] != "ungraded"]
        points, most = (math.fsum(line[what] for line in lines) for what in ("points", "max"))
        lost = [line for line in lines if line["state"] != "full" and not explained_by(line["reason"])]
        told = [f"{line['title']}: {line['points']:g} of {line['max']:g}, {line['reason']}" for line in lost]
        told += [SLOW] if any("ran longer than" in line["reason"] for line in lost) else []
        told[:0] = [f"{points:g} of the {most:g} points that can be given here"] if told else []
        seconds = f"all {most:g} points that can be given here, in {ruling.verdict.seconds:.0f} s"
        return _check(f"right answers to {name}", "; ".join(told), seconds)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(graded, names or assignment_names(root))


def show_class(console: Console, checks: list[Check]) -> bool:
    """Print the table. Returns whether every check is "ready" or a "note"."""
    state = {"not ready": "NOT READY"}
    rows = ((check.what, state.get(check.state, check.state), check.detail) for check in checks)
    tell_table(console, ("of", "state", "detail"), rows, "Ready to grade this class?")
    return all(check.state != "not ready" for check in checks)
