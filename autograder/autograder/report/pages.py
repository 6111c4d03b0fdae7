"""Where the feedback pages and judged notebooks of one set are, and how they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.csv_tables import guard
from autograder.gradebook import CourseGradebook
from autograder.judge.judge import Verdict
from autograder.layout import Assignment, NotebookDocument
from autograder.release.source import stable_json
from autograder.report.asked import answered
from autograder.report.notebook import autograded_notebook, read_autograded
from autograder.report.page import feedback_page
from autograder.results import StoredRecord, key_of, write_atomic


@dataclass(frozen=True)
class Pages:
    """out: the folder of grades. worked: as autograder.worked gives it."""

    out: Path
    assignment: Assignment
    worked: Mapping[str, Any] = field(default_factory=dict)

    def feedback(self, student: str) -> Path:
        """Path of one student's feedback page."""
        return self._file("feedback", student, ".html")

    def autograded(self, student: str) -> Path:
        """Path of one student's judged notebook, which formgrader shows."""
        return self._file("autograded", student, ".ipynb")

    def _file(self, step: str, student: str, suffix: str) -> Path:
        return self.out / step / student / self.assignment.name / f"{self.assignment.notebook}{suffix}"

    def write_notebook(
        self, student: str, notebook: NotebookDocument, verdict: Verdict, attempt: int
    ) -> None:
        """The judged notebook, of its cells as they were handed in or as they stand there."""
        write_atomic(self.autograded(student), stable_json(autograded_notebook(notebook, verdict, attempt)))

    def write_feedback(self, book: CourseGradebook, record: StoredRecord) -> None:
        """The page, with what a person has entered in formgrader by now; that is entered in the record.

        Its notebook is the judge's own file, so that nobody reads the student's.
        """
        student = record["student"]
        if record["status"] != "missing":
            page = self.page(book, record, read_autograded(self.autograded(student)))
            write_atomic(self.feedback(student), page.encode())
        record["page"] = self.key(book, student)

    def page(self, book: CourseGradebook, record: StoredRecord, notebook: NotebookDocument | None) -> str:
        """The text of the feedback page."""
        changes, student = book.in_force(self.assignment), record["student"]
        by_hand, verdict = book.by_hand(self.assignment, student), verdict_of(book, self.assignment, record)
        told, asked = changes.told, self._asked(student)
        return feedback_page(
            self.assignment, student, record, notebook, verdict, by_hand, told, asked, self._worked(book)
        )

    def key(self, book: CourseGradebook, student: str) -> str:
        """What the feedback page of an unchanged result depends on."""
        by_hand, changes = book.by_hand(self.assignment, student), book.in_force(self.assignment)
        return key_of(*by_hand, changes, self._asked(student), self._worked(book))

    def _worked(self, book: CourseGradebook) -> Mapping[str, Any]:
        """None before the due date of the set: others are still at work, and a page can be passed on."""
        return {} if book.still_open(self.assignment) else self.worked

    @cached_property
    def requests(self) -> list[dict[str, str]]:
        """The regrade requests of the set, with their answers."""
        return list(answered(self.out, self.assignment))

    def _asked(self, student: str) -> list[dict[str, str]]:
        return [row for row in self.requests if row["student"] == guard(student)]


def verdict_of(book: CourseGradebook, assignment: Assignment, record: StoredRecord) -> Verdict | None:
    """What was decided, with the points of the changes in force; None where nothing was judged."""
    if not record["verdict"]:
        return None
    changes = book.in_force(assignment)
    return Verdict.from_dict(record["verdict"]).as_changed(changes.worth, changes.given)
