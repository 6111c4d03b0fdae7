"""The feedback page of one submission: one file, no scripts, nothing fetched from elsewhere."""

import math
from pathlib import Path

import jinja2

from autograder.report.notebook import table

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def feedback_page(assignment, student, record, notebook=None, verdict=None, by_hand=({}, {}, 0.0)):
    """HTML text. record: the stored result (status, reason, notes, isolation); notebook and verdict: None if it was not graded.

    by_hand: points and comments that a person entered, by grade id, and the late penalty, as Book.by_hand gives them.
    """
    scores, comments, penalty = by_hand
    cells = verdict.cells.values() if verdict else ()
    total = math.fsum(scores.get(cell.grade_id, cell.points) or 0.0 for cell in cells)
    open_ = {kind: math.fsum(cell.max for cell in cells if cell.state == kind and cell.grade_id not in scores) for kind in ("manual", "ungraded")}
    return ENVIRONMENT.get_template("feedback.html.j2").render(
        assignment=assignment, student=student, record=record, verdict=verdict, blocks=_blocks(notebook, verdict) if verdict else [],
        scores=scores, comments=comments, penalty=penalty, total=max(0.0, total - penalty), open=open_,
    )  # fmt: skip


def _blocks(notebook, verdict):
    """The answers and the judged cells in notebook order: what the page shows of the notebook."""
    blocks = []
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader")
        if not about:
            continue
        judged = verdict.cells.get(about["grade_id"])
        if about["solution"]:
            error = verdict.cell_errors.get(about["grade_id"], "")
            blocks.append({"kind": "answer", "id": about["grade_id"], "source": cell["source"], "error": error, "judged": judged})
        elif judged is not None:
            blocks.append(
                {
                    "kind": "report",
                    "id": about["grade_id"],
                    "html": jinja2.utils.markupsafe.Markup(table(judged)._repr_html_()),
                    "judged": judged,
                }
            )
    return blocks
