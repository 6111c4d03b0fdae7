"""What the class report says, counted from what grading stored. No figure of a student's here becomes a 0."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.gradebook.standing import Standing
from autograder.layout import Assignment
from autograder.lookalikes import told_apart
from autograder.results import StoredRecord
from warplab.tasks.rubric import explained_by

LONGEST = 160  # characters of a pattern
MANY_ATTEMPTS = 10
UNWRITTEN = "not written yet: "  # how scoring begins the reason of an untouched stub
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
OTHERS = re.compile(r" \(and \d+ more\)")
Records = Mapping[str, StoredRecord]
"""{student: record} of one set."""


@dataclass(frozen=True)
class RowFailure:
    """One row of a rubric: how many lost points in it, of how many who wrote something.

    pattern: the commonest; alike: how many had it.
    """

    task: str
    title: str
    failed: int
    of: int
    pattern: str
    alike: int


@dataclass(frozen=True)
class TaskOutcome:
    """One task of a set: how many got all points of what is judged, some, none; the mean share of points."""

    task: str
    full: int
    partial: int
    none: int
    mean: float


@dataclass(frozen=True)
class TimedRow:
    """One timed row of one student: its time over the library's on the same device, with its interval."""

    task: str
    student: str
    low: float
    ratio: float
    high: float
    seconds: float


@dataclass(frozen=True)
class OpenCell:
    """A cell whose points wait: for a GPU, or for a person."""

    cell: str
    kind: str
    points: float
    students: int


@dataclass(frozen=True)
class SetOverview:
    """One set. shares: of the points judged so far, by student with a score. statuses: how many of each."""

    name: str
    title: str
    max: float
    statuses: dict[str, int]
    shares: dict[str, float]
    tasks: list[TaskOutcome]
    rows: list[RowFailure]
    timings: list[TimedRow]
    work: list[OpenCell]
    flags: list[tuple[str, str]]
    standings: list[Standing] = field(repr=False)

    @property
    def median(self) -> float | None:
        return statistics.median(self.shares.values()) if self.shares else None


def overview(assignment: Assignment, standings: Sequence[Standing], records: Records) -> SetOverview:
    """Everything about one set. standings: of this set alone."""
    verdicts = {student: record["verdict"] for student, record in records.items() if record["verdict"]}
    return SetOverview(
        assignment.name,
        assignment.notebook,
        max((one.max for one in standings), default=assignment.max_score),
        dict(Counter(one.status for one in standings).most_common()),
        {one.student: one.score / one.decided for one in standings if one.decided},
        _tasks(assignment, standings),
        sorted(_rows(verdicts), key=lambda row: (-row.failed / row.of, row.task, row.title)),
        list(_timings(verdicts)),
        _work(standings),
        list(_flags(records)),
        list(standings),
    )


def _tasks(assignment: Assignment, standings: Sequence[Standing]) -> list[TaskOutcome]:
    """The tasks, hardest first, timed cells on their own; answers for a person once no answer waits."""
    waiting = {work.cell for work in _work(standings) if work.kind == "manual"}
    names = {cell.grade_id: cell for cell in assignment.graded()}
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for one in standings:
        for cell in one.cells:
            if cell.points is not None and cell.max and cell.name in names.keys() - waiting:
                spec = names[cell.name]
                timed = ", timed" if spec.rubric == "time" else ""
                shares[(spec.task or f"{assignment.name}/{cell.name}") + timed].append(cell.points / cell.max)
    found = [
        TaskOutcome(
            task,
            sum(share >= 1 for share in given),
            sum(0 < share < 1 for share in given),
            sum(share <= 0 for share in given),
            statistics.fmean(given),
        )
        for task, given in shares.items()
    ]
    return sorted(found, key=lambda one: (one.mean, one.task))


def _lines(verdicts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(student, task, row) of every judged row."""
    for student, verdict in verdicts.items():
        for cell in verdict["cells"].values():
            for line in cell["lines"]:
                yield student, cell["task"], line


def _rows(verdicts: Mapping[str, Mapping[str, Any]]) -> Iterator[RowFailure]:
    found: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    named = {(student, task, line["title"]): line for student, task, line in _lines(verdicts)}
    for student, task, line in _lines(verdicts):
        if line["state"] != "ungraded":
            told = named.get((student, task, explained_by(line["reason"])), line)
            if UNWRITTEN in told["reason"]:
                continue
            found[task, line["title"] or line["key"]].append({"state": line["state"], "told": told})
    for (task, title), lines in found.items():
        patterns = Counter(pattern_of(one["told"]) for one in lines if one["state"] in ("lost", "partial"))
        if patterns:
            pattern, alike = patterns.most_common(1)[0]
            yield RowFailure(task, title, patterns.total(), len(lines), pattern, alike)


def pattern_of(line: Mapping[str, Any]) -> str:
    """A row's reason without its case and its numbers: the same mistake reads alike whatever was drawn."""
    reason = OTHERS.sub("", line["reason"], count=1)
    case = max((name for name in line["counters"] if reason.startswith(f"{name}: ")), key=len, default="")
    text = reason[len(case) + 2 :] if case else reason.partition(": ")[2] or reason
    text = NUMBER.sub("N", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _timings(verdicts: Mapping[str, Mapping[str, Any]]) -> Iterator[TimedRow]:
    for student, task, line in _lines(verdicts):
        for counters in line["counters"].values():
            if line["kind"] == "time" and "time.ratio" in counters:
                ratio = (counters[f"time.{name}"] for name in ("ratio_low", "ratio", "ratio_high", "seconds"))
                yield TimedRow(task, student, *ratio)


def _work(standings: Sequence[Standing]) -> list[OpenCell]:
    waiting = Counter(
        (cell.kind, cell.name, cell.max) for one in standings for cell in one.cells if cell.points is None
    )
    return [OpenCell(name, kind, most, count) for (kind, name, most), count in sorted(waiting.items())]


def _flags(records: Records) -> Iterator[tuple[str, str]]:
    """(student, what a person should know of this grade). A similar answer is flagged elsewhere."""
    for student, shown in sorted(told_apart(records).items()):
        if shown != student:
            yield student, f"another name looks like this one: {shown}"
    for student, record in sorted(records.items()):
        for note in record["notes"]:
            yield student, note
        if "unsafe" in record["isolation"]:
            yield student, f"graded {record['isolation']}"
        attempts = len(record.get("attempts", ()))
        if attempts >= MANY_ATTEMPTS:
            yield student, f"{attempts} different notebooks were judged"
