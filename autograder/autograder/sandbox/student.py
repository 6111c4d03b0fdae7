"""The process that runs a student's Python.

It receives cells and questions; it knows no task, expected value, score or other submission. `main(folder,
fd)` serves the grader on the socket `fd` until the other end is closed.
"""

import linecache
import sys
import types
from typing import Any

from autograder.layout import without_magics
from autograder.sandbox.messages import (
    Answer,
    BadMessage,
    Call,
    Cell,
    Channel,
    Closed,
    Executed,
    Failure,
    Missing,
    Question,
    Reply,
    serve,
)
from warplab import check, crossing
from warplab.crossing.endless import stopped_after
from warplab.simt.frontends import cell_magic


def main(folder: str, fd: int) -> None:
    """Execute cells in one namespace and answer questions about what they defined."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    check.grade, check.predict, check.puzzle, check.climb = ungraded, unasked, unasked, unasked

    def handle(channel: Channel, message: Cell | Question) -> None:
        if isinstance(message, Cell):
            channel.send(Executed(execute(message, module.__dict__)))
        else:
            _reply(channel, answer(message, module.__dict__, channel))

    serve(fd, (Cell, Question), handle)


def ungraded(name: str, submission: object, plan: object = None, rubric: str | None = None) -> float:
    """Replaces warplab.check.grade: a notebook's own checks do nothing while it is judged."""
    return 0.0


def unasked(*asked: object, **named: object) -> None:
    """Replaces warplab.check.puzzle, predict and climb, whose output nobody reads while judging."""


def execute(cell: Cell, namespace: dict[str, Any]) -> str | None:
    """Execute one cell. Returns None, or one sentence about what it raised."""
    name = f"<cell {cell.id}>"
    cuda = cell_magic.parted(cell.source)
    source = without_magics(cell.source)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        if cuda:
            cell_magic.bind_kernels(*cuda, namespace)
        else:
            with stopped_after():
                exec(compile(source, name, "exec"), namespace)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: as in Jupyter, it ends only the cell
        return crossing.explain(error)
    return None


def answer(question: Question, namespace: dict[str, Any], channel: Channel) -> Answer | Failure | Missing:
    """Answer one Question with the student's code, which may send Calls over the channel meanwhile."""
    names = question.entry, question.plan_entry
    missing = next((name for name in names if name and name not in namespace), None)
    if missing:
        return Missing(missing)

    def call(message: dict[str, Any]) -> dict[str, Any]:
        channel.send(Call(message))
        return channel.receive((Reply,)).data

    plan = namespace[question.plan_entry] if question.plan_entry else None
    try:
        with stopped_after(question.most_s):
            kind = crossing.CROSSINGS[question.crossing]
            return Answer(kind.answer(question.data, names, namespace[question.entry], plan, call))
    except Closed:
        raise
    except BaseException as error:  # also SystemExit: it must not end this process
        return Failure(crossing.explain(error))


def _reply(channel: Channel, message: Answer | Failure | Missing) -> None:
    try:
        channel.send(message)
    except BadMessage as problem:
        channel.send(Failure(f"the result could not be sent back: {problem}"))
