"""What is not written yet in a student's own notebook. It parses the cells, so it is not for submissions."""

import ast
from collections.abc import Iterator

from autograder.layout import Assignment, NotebookCell, without_magics
from autograder.validate.restore import Defect
from autograder.validate.validate import Checked


def unfinished(checked: Checked, assignment: Assignment) -> list[Defect]:
    """A Defect for each cell that has a syntax error or still contains the released stub."""
    cells = enumerate(checked.notebook["cells"], 1)
    return [defect for number, cell in cells for defect in _of_cell(number, cell, assignment)]


def _of_cell(number: int, cell: NotebookCell, assignment: Assignment) -> Iterator[Defect]:
    spec = assignment.cells.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
    name, source = f'the cell "{spec.grade_id}"' if spec else f"cell {number}", cell["source"]
    if spec and spec.kind != "grade" and source.strip() in ("", spec.source.strip()):
        yield Defect("not-written", f"{name} is as it was handed out", fatal=False)
    elif cell["cell_type"] == "code" and not source.startswith("%%"):
        try:
            tree = ast.parse(without_magics(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f"{getattr(error, 'msg', error)} (line {getattr(error, 'lineno', None) or 1})"
            yield Defect("syntax-error", f"{name} does not run: {where}", fatal=False)
            return
        for node in ast.walk(tree) if spec and spec.kind == "solution" else ():
            if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node):
                what = f"line {node.lineno} of {name} is `raise NotImplementedError()` still"
                yield Defect("stub-line", f"{what}: write your code in its place, and delete it", fatal=False)
