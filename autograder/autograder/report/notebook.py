"""The autograded notebook: the student's cells, and the judge's report as the output of each test cell."""

import copy

import warplab.check
import warplab.task


def table(cell):
    """The rubric of one judged cell (a CellVerdict), as the student saw it in the notebook: has _repr_html_ and repr."""
    return warplab.check.Table(warplab.task.Report(cell.task, tuple(warplab.task.Line(**line) for line in cell.lines)))


def autograded_notebook(notebook, verdict):
    """A copy of `notebook` (a dict) with outputs. Student text inside the tables is escaped where the table is made."""
    result = copy.deepcopy(notebook)
    for cell in result["cells"]:
        judged = verdict.cells.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
        if judged is not None and judged.lines:
            shown = table(judged)
            data = {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
            cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
    return result
