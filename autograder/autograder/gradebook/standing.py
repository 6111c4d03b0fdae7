"""Each student's present status and points in each set, from the gradebook and the stored results."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbgrader.api import Comment, Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy.orm import selectinload, undefer

from autograder.results import Results

WITHOUT_SCORE = ("malformed", "missing", "not graded")


@dataclass(frozen=True)
class CellPoints:
    """One grade cell. points: None while they are open. kind: "ungraded" (needs a GPU) or "manual"."""

    name: str
    kind: str
    max: float
    points: float | None


@dataclass(frozen=True)
class Standing:
    """One student in one set. max: the set's points. status, reason, isolation: as stored by grading.

    attempt: which notebook was judged, from 1 on; 0 for none. cells: empty where there is no score.
    penalty: points off for lateness.
    """

    student: str
    assignment: str
    max: float
    status: str
    reason: str = ""
    isolation: str = ""
    attempt: int = 0
    cells: tuple[CellPoints, ...] = ()
    penalty: float = 0.0

    @property
    def has_score(self) -> bool:
        """Whether the submission was judged; one that was not has no score, rather than 0."""
        return bool(self.cells)

    @property
    def score(self) -> float:
        """The points given so far, less the late penalty."""
        return max(0.0, _given(self.cells) - self.penalty)

    def open(self, kind: str) -> float:
        """Points still open: kind "ungraded" wait for a GPU, "manual" for a person."""
        return math.fsum(cell.max for cell in self.cells if cell.points is None and cell.kind == kind)

    @property
    def decided(self) -> float:
        """The maximum of the cells that are judged so far."""
        return math.fsum(cell.max for cell in self.cells if cell.points is not None)

    def without(self, names: Collection[str]) -> "Standing":
        """The same without the cells `names`: the set's maximum shrinks by theirs, and the late penalty in
        proportion to the points given, since lateness cost points in those cells, too."""
        left = tuple(cell for cell in self.cells if cell.name not in names)
        out = math.fsum(cell.max for cell in self.cells if cell.name in names)
        given, remains = _given(self.cells), _given(left)
        penalty = self.penalty * (remains / given if given else 1.0)
        return replace(self, cells=left, max=self.max - out, penalty=penalty)


def _given(cells: Collection[CellPoints]) -> float:
    return math.fsum(cell.points or 0.0 for cell in cells)


def whole_class(gradebook: Gradebook, assignment: str) -> dict[str, Any]:
    """{student: nbgrader's submission} of a set, with one query a table instead of several a student."""
    kind: Any = SubmittedAssignment
    maximum: Any = Grade.max_score
    parts = selectinload(kind.notebooks)
    grades = parts.selectinload(SubmittedNotebook.grades)
    wanted = (
        undefer(kind.late_submission_penalty),
        parts.selectinload(SubmittedNotebook.notebook),
        grades.selectinload(Grade.cell),
        grades.undefer(maximum),
        parts.selectinload(SubmittedNotebook.comments).selectinload(Comment.cell),
    )
    entered = gradebook.db.query(kind).filter(kind.name == assignment).options(*wanted)
    return {submission.student_id: submission for submission in entered}


def standings(gradebook: Gradebook, out: Path, assignments: Collection[str] = ()) -> Iterator[Standing]:
    """Yield the Standing of every student in the sets (default: all), sorted by set and student."""
    released: list[Any] = sorted(gradebook.assignments, key=lambda one: one.name)
    for assignment in released:
        if assignments and assignment.name not in assignments:
            continue
        records = Results(out, assignment.name).all()
        entered = whole_class(gradebook, assignment.name)
        for student in sorted(records.keys() | entered.keys()):
            yield _standing(assignment, student, entered.get(student), records.get(student, {}))


def _standing(assignment: Any, student: str, submission: Any, record: Any) -> Standing:
    """assignment, submission (or None): nbgrader's, whose columns have no types."""
    status = record.get("status", "not graded")
    about = record.get("reason", ""), record.get("isolation", ""), record.get("attempt") or 0
    known = Standing(student, assignment.name, assignment.max_score, status, *about)
    if submission is None or status in WITHOUT_SCORE:
        return known
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    cells = tuple(
        CellPoints(
            grade.name,
            "ungraded" if grade.cell.cell_type == "code" else "manual",
            grade.max_score,
            None if grade.auto_score is None and grade.manual_score is None else grade.score,
        )
        for grade in grades
    )
    return replace(known, cells=cells, penalty=round(submission.late_submission_penalty or 0.0, 2))
