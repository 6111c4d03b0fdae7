"""The data of the class report, from the stored results. Points that are still open never count as 0."""

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

LONGEST = 160  # characters of a pattern (see pattern_of)
MANY_ATTEMPTS = 10
UNWRITTEN = "not written yet: "  # in the reason that scoring gives an untouched stub
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
OTHERS = re.compile(r" \(and \d+ more\)")
Records = Mapping[str, StoredRecord]
"""{student: record} of one set."""


@dataclass(frozen=True)
class RowFailure:
    """How one rubric row failed: `failed` of the `of` students who wrote something lost points in it.

    pattern: the commonest reason (pattern_of). alike: how many students had that one.
    """

    task: str
    title: str
    failed: int
    of: int
    pattern: str
    alike: int


@dataclass(frozen=True)
class TaskOutcome:
    """One task of a set: how many students got all, some, none of the judged points; the mean share (0-1)."""

    task: str
    full: int
    partial: int
    none: int
    mean: float


@dataclass(frozen=True)
class TimedRow:
    """One timed row of one student: its time, and the ratio to the library's time on the same device.

    low, high: the ratio's interval. seconds: the kernel's own time.
    """

    task: str
    student: str
    low: float
    ratio: float
    high: float
    seconds: float


@dataclass(frozen=True)
class OpenCell:
    """A cell whose points are open: kind "ungraded" waits for a GPU, "manual" for a person."""

    cell: str
    kind: str
    points: float
    students: int


@dataclass(frozen=True)
class SetOverview:
    """All about one set. statuses: {status: how many}. shares: {student: share of the points judged so far}.

    rows: the failed rubric rows. work: the open cells. flags: (student, what to know about this grade).
    """

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
    """Make the overview of one set. standings, records: of this set only."""
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
    """The tasks, hardest first. Timed cells are separate; written answers count once all are graded."""
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
    """Yield (student, task, row) for every judged rubric row."""
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
    """A row's reason without its case and its numbers, so that the same mistake on other inputs is equal."""
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
    """Yield (student, what to know about this grade). Similar answers are flagged by autograder.similar."""
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
