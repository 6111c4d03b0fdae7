"""The autograded notebook: the student's cells, and the judge's report as the output of each test cell."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.judge.judge import CellVerdict, Verdict
from autograder.layout import Assignment, NotebookCell, NotebookDocument
from autograder.results import Results
from autograder.user_error import UserError
from warplab.tasks.feedback import Table
from warplab.tasks.rubric import Line, Report


def table(cell: CellVerdict, attempt: int = 1) -> Table:
    """The rubric of one judged cell as the student saw it: has _repr_html_ and repr.

    attempt: the number of this submission; the last of three hints opens from the second on.
    """
    return Table(Report(cell.task or "", tuple(Line(**line) for line in cell.lines)), attempt > 1)


def autograded_notebook(notebook: NotebookDocument, verdict: Verdict, attempt: int = 1) -> NotebookDocument:
    """A copy of `notebook` with outputs; a student's text is escaped where a table is made.

    attempt: as in table().
    """
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
    """An autograded notebook, its text joined; None where there is none or it is damaged."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        for cell in document["cells"]:
            cell["source"] = "".join(cell["source"])
            cell["metadata"].get("nbgrader")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document


def judged_notebooks(assignment: Assignment, grades: Path) -> Iterator[tuple[str, list[NotebookCell]]]:
    """(student, cells) of each notebook that the judge wrote. UserError where nothing is graded."""
    students = Results(grades, assignment.name).all()
    if not students:
        raise UserError(
            f"nothing is graded for {assignment.name} in {grades}; run `autograder grade {assignment.name}`"
        )
    for student in students:
        found = read_autograded(grades / "autograded" / student / assignment.name / assignment.filename)
        if found:
            yield student, found["cells"]
