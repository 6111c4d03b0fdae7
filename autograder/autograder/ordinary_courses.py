"""Ordinary nbgrader courses, whose tests are cells with asserts: they run in our sandbox instead of a kernel.

In such a course's nbgrader_config.py, with all else as it is:

    c.Autograde.autograde_preprocessors = [
        "autograder.ordinary_courses.InSandbox",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]

The student's code then reaches neither the gradebook nor other submissions nor the network. It does stand in
one process with the test cells, as in nbgrader itself: it can read them and make them pass. Only tasks in the
manner of warplab.tasks are judged elsewhere. The notebook file is read by nbgrader, before we are asked;
its cells are taken apart where they run.
"""

import math

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import Bool, Float

from autograder.judge.budget import Budget, Lost
from autograder.judge.process import Process
from autograder.sandbox import Limits
from autograder.sandbox.choose import choose
from autograder.sandbox.messages import Answer, Cell, Executed, Failure, Missing, Question

GIVE = "_give_the_value"


class InSandbox(NbGraderPreprocessor):
    """In place of Execute: an error becomes the cell's output, and so does a test's partial credit.

    nbgrader scores these outputs by its own rules, with two differences: a warning on stderr costs nothing,
    and a partial credit that is no number from 0 to the cell's points is an error. A cell that ends the
    process or takes too long fails, and all after it.
    """

    unsafe = Bool(False, help="Run without a sandbox where none works.").tag(config=True)
    seconds = Float(30.0, help="Wall-clock limit of one cell.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        cells = [cell for cell in nb.cells if cell.cell_type == "code"]
        lost = None
        limits = Limits.of(self.seconds)
        with Process(choose(self.unsafe), "student", Budget(limits)) as process:
            for number, cell in enumerate(cells):
                cell.outputs = [failed(f"not run: {lost}")] if lost else []
                if not lost and cell.source.strip():
                    try:
                        process.begin_step(self.seconds)
                        cell.outputs = run(process, f"{number}", cell)
                    except Lost as problem:
                        lost = problem
                        cell.outputs = [failed(str(problem))]
        return nb, resources


def run(process: Process, identity: str, cell: NotebookNode) -> list[NotebookNode]:
    """Run one cell; returns its outputs. Raises Lost."""
    keep = GIVE if is_grade(cell) else ""
    error = process.ask(Cell(identity, cell.source, keep), (Executed,)).error
    if error:
        return [failed(error)]
    if not keep:
        return []
    question = Question("function", GIVE, None, {"inputs": {}, "returns": {"points": "numbers"}})
    reply = process.ask(question, (Answer, Failure, Missing))
    points = _number(reply)
    if points is None:
        return []  # the cell has no last value, or it is no number, so it is no partial credit
    if not math.isfinite(points) or not 0 <= points <= cell.metadata["nbgrader"]["points"]:
        return [failed(f"{points!r} is no number of points for this cell")]
    return [new_output("execute_result", {"text/plain": repr(points)}, execution_count=1)]


def _number(reply: Answer | Failure | Missing) -> float | None:
    """The number that a process gave, None where it gave none."""
    if not isinstance(reply, Answer):
        return None
    try:
        return float(reply.data["outputs"]["points"])
    except (KeyError, TypeError, ValueError):
        return None


def failed(text: str) -> NotebookNode:
    """An error as a cell's output."""
    return new_output("error", ename="Failed", evalue=text, traceback=[text])
