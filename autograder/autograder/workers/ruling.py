"""What a machine answers about one submission: bytes of JSON, checked before anything is made of them."""

import json
import math
from typing import Annotated

import msgspec
from msgspec import Meta

from autograder.judge.judge import TOLERANCE, Verdict, legible
from autograder.layout import Assignment
from autograder.reader.contents import HandedInCell
from autograder.validate import Malformed, checked
from warplab.tasks.rubric import Line, Text, one_of

MOST_BYTES = 64 * 2**20


class BadRuling(ValueError):
    """An answer that no judge of ours gives."""


class Ruling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was decided about one Commission, by its id; its annotations are what an answer is held to.

    status: a Verdict's, "malformed", "not graded" (nobody's grade: the next run tries again) or "refused"
    (this machine may not judge; another may); "missing" never crosses. cells: of the notebook that was
    judged. cells, verdict: None where nothing was. isolation: how student code ran, "" where none did.
    machine: the name of the one that judged.
    """

    id: str
    status: Annotated[str, one_of("graded", "timeout", "crashed", "malformed", "not graded", "refused")]
    reason: Text = ""
    notes: Annotated[tuple[Text, ...], Meta(max_length=3000)] = ()
    cells: Annotated[list[HandedInCell], Meta(max_length=2000)] | None = None
    verdict: Verdict | None = None
    isolation: Text = ""
    machine: Annotated[str, Meta(max_length=300)] = ""

    def as_bytes(self) -> bytes:
        """JSON."""
        return json.dumps(msgspec.to_builtins(self)).encode()


def without_grade(of: str, why: str, machine: str = "", status: str = "not graded") -> Ruling:
    """Nothing was judged, and this is why."""
    return Ruling(of, status, legible(why), machine=machine)


def fault_of(problem: BaseException) -> str:
    """What is said of an error that nobody thought of."""
    return f"fault in the grader: {type(problem).__name__}: {str(problem)[:300]}"


def read_ruling(data: object, of: str, assignment: Assignment) -> Ruling:
    """The Ruling in an answer about the commission `of`. Raises BadRuling for anything else.

    Its cells become a notebook as submitted ones do: types, metadata and tests come from the released set.
    """
    if type(data) is not bytes or len(data) > MOST_BYTES:
        raise BadRuling(f"expected at most {MOST_BYTES // 2**20} MiB of JSON")
    try:
        told = msgspec.convert(json.loads(data), Ruling)
        if told.verdict is not None:
            _check(told.verdict, assignment)
        if told.cells is not None:
            checked(told.cells, assignment)
    except (ValueError, RecursionError, Malformed) as problem:  # of JSON, of msgspec, of the cells
        raise BadRuling(f"the answer is not of the form of a ruling: {str(problem)[:300]}") from None
    if told.id != of:
        raise BadRuling("the answer is about another submission")
    if (told.cells is None) is not (told.verdict is None):
        raise BadRuling("a verdict goes with the cells that were judged")
    if told.verdict and told.verdict.status != told.status:
        raise BadRuling("a verdict goes with its own status")
    texts = {name: legible(getattr(told, name)) for name in ("reason", "isolation", "machine")}
    return msgspec.structs.replace(told, notes=tuple(map(legible, told.notes)), **texts)


def _check(verdict: Verdict, assignment: Assignment) -> None:
    """Raises BadRuling unless it has just the cells of the released set, and in each at most its points."""
    specs = {spec.grade_id: spec for spec in assignment.graded()}
    if set(verdict.cells) != set(specs):
        raise BadRuling("the verdict has other cells than the problem set")
    for key, cell in verdict.cells.items():
        spec = specs[key]
        same = (cell.grade_id, cell.max) == (key, spec.points) and cell.task in (None, spec.task)
        fits = cell.points is None or cell.points <= spec.points + TOLERANCE
        if not same or not fits or (cell.points is None) is not (cell.state in ("ungraded", "manual")):
            raise BadRuling(f"the verdict on {key} does not fit the problem set")
        lines = msgspec.convert(cell.lines, Annotated[list[Line], Meta(max_length=200)])
        cell.lines = [dict(vars(line)) for line in lines]
        for line in lines:
            if not line.points <= line.max < math.inf:
                raise BadRuling(f"a row of {key} has {line.points} of {line.max} points")
    if not math.isfinite(verdict.seconds):
        raise BadRuling("the time that it took is no number")
