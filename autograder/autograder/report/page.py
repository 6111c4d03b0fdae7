"""The feedback page of one submission: one file, no scripts, nothing fetched from elsewhere."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from autograder.gradebook import ByHand
from autograder.judge.judge import Verdict
from autograder.layout import Assignment, NotebookDocument, first_lines
from autograder.report.notebook import table
from autograder.results import StoredRecord
from warplab.rendering import render
from warplab.tasks.feedback import UNDRAWN, drawn_or_told
from warplab.tasks.rubric import so_many

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
    """HTML text.

    record: the stored result (status, reason, notes, isolation). notebook, verdict: None if not graded.
    by_hand: what CourseGradebook.by_hand gives. changes: after hand-in, a sentence each.
    asked: rows of autograder.report.asked. worked: as autograder.worked gives it; what has all points
    shows its own.
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
    """Of `worked` what has all points, those of a person before the judge's."""
    cells = verdict.cells
    return {
        key: one
        for key, one in worked.items()
        if key in cells and (scores.get(key, cells[key].points) or 0) >= cells[key].max
    }


def _blocks(notebook: NotebookDocument, verdict: Verdict, attempt: int) -> list[dict[str, Any]]:
    """The answers and the judged cells in notebook order: what the page shows of the notebook."""
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
    """Of each answer the lines that the report names: `<cell box_blur>:27` says whose, `line 27` is of the
    answer above it.
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
        for number in re.findall(r"\bline\W{1,3}(\d+)", said):  # also in a drawing's data: "line": 27
            found.setdefault(above, set()).add(int(number))
    return found
