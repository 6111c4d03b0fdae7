"""The points of a problem set that a notebook has earned so far: the bar under each table of `grade`.

Results of checks are also stored in a small file beside the notebook, so that they survive a restart of the
kernel. Earlier results are shown separately, since the code may have changed; "Run all cells" checks
everything again. `autograder progress` shows the file. The grader never reads it.
"""

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from warplab import crossing
from warplab.rendering import render
from warplab.tasks import registry
from warplab.tasks.rubric import so_many

EARNED, OPEN = "#2a9d6f", "#7a869a"
WIDTH = 40  # characters of the bar in a terminal
FILE = ".progress.json"
PAUSE = 20 * 60  # seconds without a check that count as a pause
YEAR = 366 * 24 * 60 * 60.0

_latest = {}  # {(task, rubric): Report of the last check}, which may be worse than an earlier one
_tried = {}  # {task: hashes of the code of attempts that lost points}


def changed_attempts(report, text):
    """How many different attempts at this task have lost points, including this one. text: its code."""
    tried = _tried.setdefault(report.task, set())
    if any(line.state in ("lost", "partial") for line in report.lines):
        tried.add(hash(text))
    return len(tried)


def after(report, rubric=None):
    """Record the report of one grade cell; returns the Bar of its problem set."""
    _latest[report.task, rubric] = report
    return Bar(report.task.partition("/")[0], _latest, recalled())


@dataclass(frozen=True)
class Remembered:
    """The result of one check in the file; `score` and `ungraded` as in a Report."""

    score: float
    ungraded: float


def remember(report, rubric=None):
    """Store a check's result in the current folder, if that has the set's notebook and can be written to."""
    folder, name = Path(), report.task.partition("/")[0]
    if not any(folder.glob(f"{name}_*.ipynb")):
        return
    known, now = _read(folder), time.time()
    mine = known.setdefault(name, {"seconds": 0.0, "last": now, "checks": {}})
    mine["seconds"] += now - mine["last"] if 0 < now - mine["last"] <= PAUSE else 0.0
    mine["last"] = now
    mine["checks"][f"{report.task} {rubric or ''}".strip()] = [report.score, report.ungraded]
    fresh = folder / f"{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        try:
            fresh.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            os.replace(fresh, folder / FILE)
        finally:
            fresh.unlink(missing_ok=True)


def recalled(folder=None):
    """{(task, rubric): Remembered} from the file in a folder (default: this one), without damaged entries."""
    found = {}
    for name, mine in _read(folder or Path()).items():
        for task in registry.names(name):
            for rubric in (None, "time"):
                given = mine["checks"].get(f"{task} {rubric or ''}".strip())
                if isinstance(given, list) and [type(one) for one in given] == [float, float]:
                    worth = registry.get(task).points_for(rubric)
                    found[task, rubric] = Remembered(*(_within(one, worth) for one in given))
    return found


def solved(task):
    """Whether a check of the task has given all points, according to the file."""
    one = recalled().get((task, None))
    return bool(one) and one.score >= registry.get(task).points_for(None)


def files_in(folder: Path) -> list[Path]:
    """The progress files in this folder and in its subfolders."""
    return sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}")})


def told_in(folder: Path) -> list[str]:
    """For each set with a progress file in or below a folder, its bar and the minutes of work, as text."""
    told = []
    for file in files_in(folder):
        known = _read(file.parent)
        told += [] if known else [f"{file} cannot be read: the next check in its folder makes it anew\n"]
        for name, mine in sorted(known.items()):
            bar = Bar(name, recalled(file.parent), unchecked="not checked here yet")
            minutes = so_many(round(mine["seconds"] / 60), "minute")
            pauses = f"pauses over {PAUSE / 60:.0f} left out"
            told.append(f"{bar!r}\n  {minutes} from the first check to the last, {pauses}\n")
    return told or [f"no check has run in a notebook in {folder} yet, nor in a folder in it"]


def _read(folder):
    """{set: {"seconds", "last", "checks"}} from the file in a folder; {} if it is missing or damaged."""
    try:
        known = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {
            name: {
                "seconds": _within(float(mine["seconds"]), YEAR),
                "last": float(mine["last"]),
                "checks": dict(mine["checks"]),
            }
            for name, mine in known.items()
            if registry.names(name)
        }
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        return {}


def _within(number, most):
    """The number clamped to [0, most]; NaN becomes 0."""
    return min(max(0.0, number), most)


class Bar:
    """The points of one problem set as HTML in the page's colours, or as plain text.

    reports: {(task, rubric): Report}. earlier: the same for checks before this kernel started. unchecked:
    the words for the rest. Timed rows count in the total; without a CUDA device their points are open, not
    lost.
    """

    def __init__(self, problem_set, reports, earlier=None, unchecked="not checked since the kernel started"):
        self.name = problem_set
        done, before, waiting, self.points, self.open, self.max = [], [], [], 0.0, 0.0, 0.0
        for name in registry.names(problem_set):
            for rubric, label in ((None, ""), ("time", ", speed")):
                worth, report = registry.get(name).points_for(rubric), reports.get((name, rubric))
                old = not report
                report = report or (earlier or {}).get((name, rubric))
                self.max += worth
                if rubric == "time" and (report.ungraded if report else not crossing.can_time()):
                    self.open += worth
                elif report:
                    self.points += report.score
                    told = before if old else done
                    told.append(f"{_short(name)}{label} {report.score:g} of {worth:g}")
                elif worth:
                    waiting.append(_short(name) + label)
        self.parts = [", ".join(done)] if done else []
        self.parts += [f"before this kernel started: {', '.join(before)}"] if before else []
        self.parts += [f"{unchecked}: {', '.join(waiting)}"] if waiting else []
        self.parts += [f"left open: {self.open:g} for speed, which need a CUDA GPU"] if self.open else []

    def __repr__(self):
        filled = int(WIDTH * self.points / self.max)
        return "\n  ".join([f"{self.headline}  [{'#' * filled}{'.' * (WIDTH - filled)}]", *self.parts])

    def _repr_html_(self):
        return render("warplab.tasks", "progress.html.j2", bar=self, earned=EARNED, open=OPEN)

    @property
    def headline(self):
        return f"{self.name} so far: {self.points:g} of {self.max:g} points that checks give"


def _short(name):
    return name.partition("/")[2]
