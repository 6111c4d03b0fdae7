"""Writes grades into nbgrader's own database: one writer, one transaction per submission."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import nbgrader.api
from alembic.script import ScriptDirectory
from nbconvert.exporters.exporter import ResourcesDict
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from sqlalchemy.exc import DatabaseError, OperationalError
from traitlets.config import Config

from autograder.gradebook.changes import ChangedSet, read_changes
from autograder.gradebook.standing import whole_class
from autograder.layout import Assignment
from autograder.roster import Person
from autograder.user_error import UserError

COURSE = "how-a-gpu-works"
NAMES = ("first_name", "last_name", "email")
NAMELESS = "(no name)"  # a first name for formgrader, which would show "None, None"
Edits = Mapping[str, Any]  # what a person entered: {"score GRADE_ID" or "comment GRADE_ID": value}


class ByHand(NamedTuple):
    """What a person entered in formgrader, by grade id. penalty: points off for lateness; late: why."""

    scores: dict[str, float] = {}
    comments: dict[str, str] = {}
    penalty: float = 0.0
    late: str = ""


def damaged(file: Path, problem: object) -> UserError:
    """The error for a file that SQLite cannot open as a gradebook."""
    return UserError(
        f"{file} is damaged or no gradebook ({problem}); bring back your last copy, or name another folder"
    )


class CourseGradebook:
    """OUT/gradebook.db, open for writing. Use as a context manager.

    config: nbgrader's, for the late penalties. Raises UserError for a file that is no gradebook.
    """

    def __init__(self, out: str | Path, config: Config | None = None) -> None:
        file = Path(out).resolve() / "gradebook.db"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _create(file)
        self.config = config
        self.changes = read_changes(file.parent)
        self.url = f"sqlite:///{file}"
        try:
            self.gradebook = Gradebook(self.url, COURSE)
        except OperationalError:  # locked, or a full disk: it may be right the next time
            raise
        except DatabaseError as problem:
            raise damaged(file, problem.orig) from None
        self._class: dict[tuple[str, str], Any] = {}

    def __enter__(self) -> CourseGradebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.gradebook.close()

    def add_assignment(self, assignment: Assignment) -> None:
        """Enter a released problem set with its cells, as `nbgrader generate_assignment` does.

        Maximum points are those after all changes. Raises UserError when graded submissions exist for an
        older set of cells.
        """
        if not self.knows(assignment):
            self._enter_cells(assignment)
        worth = self.in_force(assignment).worth
        notebook: Any = self.gradebook.find_notebook(assignment.notebook, assignment.name)
        for cell in notebook.grade_cells:
            cell.max_score = worth[cell.name]
        self.gradebook.db.commit()

    def in_force(self, assignment: Assignment) -> ChangedSet:
        """The sum of the changes after hand-in to a set."""
        return ChangedSet.of(self.changes, assignment)

    def enter_names(self, people: Mapping[str, Person]) -> None:
        """Enter the roster's names, which formgrader shows."""
        known: Any = {one.id: one for one in self.gradebook.students}
        for student, person in people.items():
            named = person.first_name or person.last_name
            told = *(person.first_and_last if named else (NAMELESS, student)), person.email
            names: Any = {key: text or None for key, text in zip(NAMES, told, strict=True)}
            if student not in known or any(getattr(known[student], key) != names[key] for key in NAMES):
                self.gradebook.update_or_create_student(student, **names)

    def _enter_cells(self, assignment: Assignment) -> None:
        self.gradebook.update_or_create_assignment(assignment.name)
        released = nbformat.from_dict(assignment.document)
        assert isinstance(released, nbformat.NotebookNode)
        try:
            SaveCells().preprocess(released, self._about(assignment))
        except RuntimeError:
            file = self.url.removeprefix("sqlite:///")
            raise UserError(
                f"{assignment.name} has other cells than when {file} was written; "
                "grade into a new --out folder"
            ) from None
        finally:
            self.gradebook.db.expire_all()

    def _about(self, assignment: Assignment, **more: str) -> ResourcesDict:
        """The resources that nbgrader's preprocessors expect."""
        told = {"notebook": assignment.notebook, "assignment": assignment.name, "db_url": self.url}
        return ResourcesDict(nbgrader=told | more)

    def knows(self, assignment: Assignment) -> bool:
        """Whether exactly this release of the set is entered, by the checksums of its cells."""
        try:
            notebook = self.gradebook.find_notebook(assignment.notebook, assignment.name)
        except MissingEntry:
            return False
        checksums = {cell.name: cell.checksum for cell in notebook.source_cells}
        return checksums == {
            name: spec.metadata["nbgrader"]["checksum"] for name, spec in assignment.cells.items()
        }

    def look_up(self, assignment: Assignment) -> None:
        """Load a whole class's submissions in few queries; the cache lasts until something is written."""
        found = whole_class(self.gradebook, assignment.name)
        self._class = {(assignment.name, student): submission for student, submission in found.items()}

    def _submission(self, assignment: Assignment, student: str) -> Any:
        """nbgrader's submission object, or None."""
        with contextlib.suppress(MissingEntry):
            known = self._class.get((assignment.name, student))
            return known or self.gradebook.find_submission(assignment.name, student)

    def save(
        self,
        assignment: Assignment,
        student: str,
        scores: Mapping[str, float | None],
        received: datetime | None = None,
        same_file: bool = False,
    ) -> None:
        """Enter one submission.

        scores: {grade_id: points, or None for "needs manual grade"}; {} marks all cells so (malformed). A
        score that a person gave in formgrader stays, and is marked for another look, as nbgrader does.
        received: when it arrived, in UTC; None if not known. Then the time entered before is kept if this is
        the same file (same_file), and removed otherwise.
        """
        self._class = {}
        with self.transaction():
            one: Any = self.gradebook.update_or_create_student(student)
            if one.first_name is None and one.last_name is None:
                one.first_name, one.last_name = NAMELESS, student
            extra: dict[str, Any] = {} if received is None and same_file else {"timestamp": received}
            submission = self.gradebook.update_or_create_submission(assignment.name, student, **extra)
            notebook = next(part for part in submission.notebooks if part.name == assignment.notebook)
            for grade in notebook.grades:
                grade.auto_score = scores.get(grade.name)
                grade.needs_manual_grade = grade.auto_score is None or grade.manual_score is not None
        self.penalise(assignment, student)

    def enter_again(
        self, assignment: Assignment, student: str, scores: Mapping[str, float | None], edits: Edits
    ) -> None:
        """Change the points of an entered submission, and the entries of a person that `edits` names."""
        submission = self._submission(assignment, student)
        notebook = next(part for part in submission.notebooks if part.name == assignment.notebook)
        for grade in notebook.grades:
            before = grade.auto_score, grade.manual_score
            grade.auto_score = scores.get(grade.name)
            grade.manual_score = edits.get(f"score {grade.name}", grade.manual_score)
            if before != (grade.auto_score, grade.manual_score):
                grade.needs_manual_grade = grade.auto_score is None and grade.manual_score is None
        for comment in notebook.comments:
            comment.manual_comment = edits.get(f"comment {comment.name}", comment.manual_comment)
        self.gradebook.db.commit()
        self.penalise(assignment, student)

    def entered(self, assignment: Assignment, student: str) -> dict[str, Any]:
        """What a person entered, as Edits; {} without a submission."""
        submission = self._submission(assignment, student)
        if submission is None:
            return {}
        notebook = next(part for part in submission.notebooks if part.name == assignment.notebook)
        told = {f"score {grade.name}": grade.manual_score for grade in notebook.grades}
        told |= {f"comment {comment.name}": comment.manual_comment for comment in notebook.comments}
        return {name: value for name, value in told.items() if value is not None}

    def penalise(self, assignment: Assignment, student: str, received: datetime | None = None) -> None:
        """Compute the late penalty anew by nbgrader's late policy, from the present points and due date.

        received: the time of arrival, in UTC; None to keep the one that is entered.
        """
        submission = self._submission(assignment, student)
        if submission is None:
            return
        if received not in (None, submission.timestamp):
            submission.timestamp = received
            self.gradebook.db.commit()
        hours: Any = self.in_force(assignment).hours.get(student)
        if hours is not None and submission.assignment.duedate is not None:
            self.gradebook.grant_extension(assignment.name, student, hours=hours)
        if submission.timestamp is None and not submission.late_submission_penalty:
            return
        late = AssignLatePenalties(config=self.config)
        late.preprocess(nbformat.v4.new_notebook(), self._about(assignment, student=student))
        self.gradebook.db.expire_all()

    def still_open(self, assignment: Assignment) -> datetime | None:
        """The set's due date plus the longest extension, in UTC, if that is in the future; else None."""
        sets: Any = self.gradebook.assignments
        due = next((one.duedate for one in sets if one.name == assignment.name), None)
        more = timedelta(hours=max(self.in_force(assignment).hours.values(), default=0))
        return due + more if due and datetime.now(UTC).replace(tzinfo=None) < due + more else None

    def without_time(self, assignment: Assignment) -> list[str]:
        """The students without a time of arrival, if the set has a due date; else []."""
        entered = self.gradebook.find_assignment(assignment.name)
        if entered.duedate is None:
            return []
        return sorted(one.student_id for one in entered.submissions if one.timestamp is None)

    def by_hand(self, assignment: Assignment, student: str) -> ByHand:
        """What a person entered in formgrader, and the late penalty."""
        submission = self._submission(assignment, student)
        if submission is None:
            return ByHand()
        notebook = next(part for part in submission.notebooks if part.name == assignment.notebook)
        given = [
            grade
            for grade in notebook.grades
            if grade.manual_score is not None or grade.extra_credit and grade.auto_score is not None
        ]
        scores = {grade.name: grade.score for grade in given}
        comments = {
            comment.name: comment.manual_comment for comment in notebook.comments if comment.manual_comment
        }
        penalty = round(submission.late_submission_penalty or 0.0, 2)
        return ByHand(scores, comments, penalty, _lateness(submission, penalty))

    @contextlib.contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Make one transaction of several of nbgrader's calls, each of which would commit by itself.

        Inside the block their commits only flush; one commit or rollback ends them all.
        """
        session = self.gradebook.db
        commit, session.commit = session.commit, session.flush
        try:
            # add_submission builds its objects before it adds them; autoflush would warn about each
            with session.no_autoflush:
                yield
            commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.commit = commit

    def forget(self) -> None:
        """Roll back what an error left half done, and drop the cache."""
        self._class = {}
        self.gradebook.db.rollback()

    def has(self, assignment: Assignment, student: str) -> bool:
        """Whether this student's submission is in the gradebook."""
        return self._submission(assignment, student) is not None


def _lateness(submission: Any, penalty: float) -> str:
    """ "1 day, 3:00:00 late: 7.5 points taken off"; "" for a submission in time or without a time."""
    late, more = submission.total_seconds_late, str(submission.extension or "").removesuffix(", 0:00:00")
    extended = f"after an extension of {more}, " if more else ""
    if submission.timestamp is None or late <= 0:
        return f"in time {extended[:-2]}" if submission.timestamp and more else ""
    off = f"{penalty:g} points taken off" if penalty else "nothing taken off by the late policy"
    return f"{extended}{timedelta(seconds=round(late))} late: {off}"


def _create(file: Path) -> None:
    """Make an empty gradebook under a temporary name, and rename it when it is complete.

    nbgrader would run the program alembic for the number of its newest table layout, which takes longer than
    all the rest; here the library is asked instead.
    """
    fresh = file.with_name(".gradebook.new")
    fresh.unlink(missing_ok=True)
    asked, nbgrader.api.get_alembic_version = nbgrader.api.get_alembic_version, _newest_layout
    try:
        Gradebook(f"sqlite:///{fresh}", COURSE).close()
    finally:
        nbgrader.api.get_alembic_version = asked
    os.replace(fresh, file)


def _newest_layout() -> str:
    """What `alembic heads` prints of nbgrader's table layouts."""
    head = ScriptDirectory(str(Path(nbgrader.api.__file__).with_name("alembic"))).get_current_head()
    assert head is not None  # nbgrader has had one since 2018
    return head
