"""A machine's answer about one submission: JSON, validated before it is used."""

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
    """The answer is not a valid ruling on the commission."""


class Ruling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision about one Commission, named by its id. Answers are validated against the annotations.

    status: a Verdict's, "malformed", "not graded" (the next run tries again) or "refused" (this machine may
    not judge; another may). cells: of the notebook that was judged. cells, verdict: None if none was judged.
    isolation: how student code ran, "" where none did. machine: the name of the machine that judged.
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
        """Serialised as JSON."""
        return json.dumps(msgspec.to_builtins(self)).encode()


def without_grade(of: str, why: str, machine: str = "", status: str = "not graded") -> Ruling:
    """The ruling on commission `of` if nothing was judged. why: a sentence."""
    return Ruling(of, status, legible(why), machine=machine)


def fault_of(problem: BaseException) -> str:
    """The sentence for an unforeseen exception."""
    return f"fault in the grader: {type(problem).__name__}: {str(problem)[:300]}"


def read_ruling(data: object, of: str, assignment: Assignment) -> Ruling:
    """Validate an answer about the commission `of`. Raises BadRuling unless it is a ruling on that one.

    Its cells must form a notebook of the set; as for submitted ones, types, metadata and tests are later
    taken from the release.
    """
    if type(data) is not bytes or len(data) > MOST_BYTES:
        raise BadRuling(f"expected at most {MOST_BYTES // 2**20} MiB of JSON")
    try:
        told = msgspec.convert(json.loads(data), Ruling)
        if told.verdict is not None:
            _check(told.verdict, assignment)
        if told.cells is not None:
            checked(told.cells, assignment)
    except (ValueError, RecursionError, Malformed) as problem:  # from JSON, msgspec or the cells
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
    """Raise BadRuling unless a verdict has exactly the set's cells, and each cell at most its points."""
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
        raise BadRuling("its time of judging is not a finite number of seconds")
