"""Writes the two files that people read about a submission: the judged notebook and the feedback page.

The page is one HTML file without scripts, and asks no server for anything.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from autograder.csv_tables import guard
from autograder.gradebook import ByHand, CourseGradebook
from autograder.judge.judge import CellVerdict, Verdict
from autograder.layout import Assignment, NotebookCell, NotebookDocument, first_lines
from autograder.release.source import stable_json
from autograder.report.asked import answered
from autograder.results import Results, StoredRecord, key_of, write_atomic
from autograder.user_error import nothing_graded
from warplab.rendering import render
from warplab.tasks.feedback import UNDRAWN, Table, drawn_or_told
from warplab.tasks.rubric import Line, Report, so_many


def table(cell: CellVerdict, attempt: int = 1) -> Table:
    """The rubric of one judged cell, displayed as in the student's notebook.

    attempt: the number of this submission, from 1; from the second on, the last of three hints is shown.
    """
    return Table(Report(cell.task or "", tuple(Line(**line) for line in cell.lines)), attempt > 1)


def autograded_notebook(notebook: NotebookDocument, verdict: Verdict, attempt: int = 1) -> NotebookDocument:
    """A copy of `notebook` whose test cells have their rubric tables as outputs. attempt: as in table()."""
    result = copy.deepcopy(notebook)
    for cell in result["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        judged = verdict.cells.get(about.get("grade_id"))
        if judged is not None:
            about["points"] = judged.max  # formgrader shows it
        if judged is not None and judged.lines:
            shown = table(judged, attempt)
            data = {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
            cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
    return result


def read_autograded(path: Path) -> NotebookDocument | None:
    """A judged notebook, its sources joined; None where there is none or it is damaged."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        for cell in document["cells"]:
            cell["source"] = "".join(cell["source"])
            cell["metadata"].get("nbgrader")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document


def judged_notebooks(assignment: Assignment, grades: Path) -> Iterator[tuple[str, list[NotebookCell]]]:
    """Yield (student, cells) for each judged notebook. Raises UserError where nothing is graded."""
    students = Results(grades, assignment.name).all()
    if not students:
        raise nothing_graded(assignment.name, grades)
    for student in students:
        found = read_autograded(Pages(grades, assignment).autograded(student))
        if found:
            yield student, found["cells"]


NOTHING = ByHand()


def feedback_page(
    assignment: Assignment,
    student: str,
    record: StoredRecord,
    notebook: NotebookDocument | None = None,
    verdict: Verdict | None = None,
    by_hand: ByHand = NOTHING,
    changes: Sequence[str] = (),
    asked: Sequence[Mapping[str, str]] = (),
    worked: Mapping[str, Any] | None = None,
) -> str:
    """The feedback page as HTML.

    record: the stored result (status, reason, notes, isolation). notebook, verdict: None if not graded.
    by_hand: from CourseGradebook.by_hand(). changes: sentences on changes after hand-in.
    asked: the student's rows of autograder.report.asked. worked: from autograder.worked; a cell with all
    points shows its worked solution.
    """
    cells = verdict.cells.values() if verdict else ()

    def draw() -> str:
        return render(
            "autograder.report",
            "page.html.j2",
            assignment=assignment,
            student=student,
            record=record,
            verdict=verdict,
            blocks=_blocks(notebook, verdict, record.get("attempt") or 1) if notebook and verdict else [],
            scores=by_hand.scores,
            comments=by_hand.comments,
            late=by_hand.late,
            most=sum(cell.max for cell in cells),
            changes=changes,
            asked=asked,
            so_far=verdict.so_far(by_hand.scores, by_hand.penalty) if verdict else None,
            so_many=so_many,
            opened=_opened(verdict, by_hand.scores, worked or {}) if verdict else {},
        )

    told = [f"{cell.grade_id}: {cell.points} of {cell.max:g}" for cell in cells]
    plain = "\n".join([assignment.notebook, student, record["reason"], UNDRAWN, *told])
    return drawn_or_told(draw, f"<!DOCTYPE html>\n<pre>{escape(plain)}</pre>\n")


def _opened(verdict: Verdict, scores: Mapping[str, float], worked: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `worked` whose cells have all points; a person's score counts before the judge's."""
    cells = verdict.cells
    return {
        key: one
        for key, one in worked.items()
        if key in cells and (scores.get(key, cells[key].points) or 0) >= cells[key].max
    }


def _blocks(notebook: NotebookDocument, verdict: Verdict, attempt: int) -> list[dict[str, Any]]:
    """What the page shows of the notebook, in its order: answers with their listings, and rubric tables."""
    blocks: list[dict[str, Any]] = []
    cited = _cited(notebook, verdict)
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader")
        if not about:
            continue
        name = about["grade_id"]
        judged = verdict.cells.get(name)
        if about["solution"]:
            texts, more = first_lines(cell["source"])
            listing = [(text, number in cited.get(name, ())) for number, text in enumerate(texts, 1)]
            listing += [(more, False)] if more else []
            answer = {"listing": listing, "error": verdict.cell_errors.get(name, "")}
            blocks.append({"kind": "answer", "id": name, "judged": judged, **answer})
        elif judged is not None:
            shown = table(judged, attempt)._repr_html_()
            blocks.append({"kind": "report", "id": name, "judged": judged, "table": shown})
    return blocks


def _cited(notebook: NotebookDocument, verdict: Verdict) -> dict[str, set[int]]:
    """{cell id of an answer: line numbers that its report mentions}, to highlight them.

    `<cell box_blur>:27` names the cell; `line 27` means the answer above the report.
    """
    found: dict[str, set[int]] = {}
    above = ""
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader") or {}
        if about.get("solution"):
            above = about["grade_id"]
            said = verdict.cell_errors.get(above, "")
        elif judged := verdict.cells.get(about.get("grade_id", "")):
            said = json.dumps(judged.lines, default=str)
        else:
            continue
        for name, number in re.findall(r"<cell ([\w-]+)>:(\d+)", said):
            found.setdefault(name, set()).add(int(number))
        for number in re.findall(r"\bline\W{1,3}(\d+)", said):  # also "line": 27 in the data of a drawing
            found.setdefault(above, set()).add(int(number))
    return found


@dataclass(frozen=True)
class Pages:
    """Paths and contents of the judged notebooks and feedback pages of one set.

    out: the folder of grades. worked: from autograder.worked.
    """

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
        """Write the judged notebook. notebook: as handed in, or the judged one of an earlier run."""
        write_atomic(self.autograded(student), stable_json(autograded_notebook(notebook, verdict, attempt)))

    def write_feedback(self, book: CourseGradebook, record: StoredRecord) -> None:
        """Write the feedback page, with what a person has entered in formgrader; sets the record's `page`.

        Its notebook is the judge's own file; the student's is not read again.
        """
        student = record["student"]
        if record["status"] != "missing":
            page = self.page(book, record, read_autograded(self.autograded(student)))
            write_atomic(self.feedback(student), page.encode())
        record["page"] = self.key(book, student)

    def page(self, book: CourseGradebook, record: StoredRecord, notebook: NotebookDocument | None) -> str:
        """The HTML of the feedback page."""
        changes, student = book.in_force(self.assignment), record["student"]
        by_hand, verdict = book.by_hand(self.assignment, student), verdict_of(book, self.assignment, record)
        told, asked = changes.told, self._asked(student)
        return feedback_page(
            self.assignment, student, record, notebook, verdict, by_hand, told, asked, self._worked(book)
        )

    def key(self, book: CourseGradebook, student: str) -> str:
        """A hash of all that the page shows besides the result: entries by hand, changes, requests."""
        by_hand, changes = book.by_hand(self.assignment, student), book.in_force(self.assignment)
        return key_of(*by_hand, changes, self._asked(student), self._worked(book))

    def _worked(self, book: CourseGradebook) -> Mapping[str, Any]:
        """The worked solutions; {} before the set's due date, as a student could pass the page on."""
        return {} if book.still_open(self.assignment) else self.worked

    @cached_property
    def requests(self) -> list[dict[str, str]]:
        """The regrade requests of the set, with their answers."""
        return list(answered(self.out, self.assignment))

    def _asked(self, student: str) -> list[dict[str, str]]:
        return [row for row in self.requests if row["student"] == guard(student)]


def verdict_of(book: CourseGradebook, assignment: Assignment, record: StoredRecord) -> Verdict | None:
    """The stored verdict with the points after all changes; None where nothing was judged."""
    if not record["verdict"]:
        return None
    changes = book.in_force(assignment)
    return msgspec.convert(record["verdict"], Verdict).as_changed(changes.worth, changes.given)
