"""What a machine answers about one submission: bytes of JSON, checked before anything is made of them."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import fastjsonschema
import yaml

from autograder.judge.judge import TOLERANCE, Verdict, legible
from autograder.layout import Assignment, NotebookDocument
from autograder.reader.contents import HandedInCell
from autograder.validate import Checked, Malformed, checked

MOST_BYTES = 64 * 2**20
MARKS = ("grade", "solution", "locked", "points")


class BadRuling(ValueError):
    """An answer that no judge of ours gives."""


@dataclass(frozen=True)
class Ruling:
    """What was decided about one Commission, by its id.

    status: a Verdict's, "malformed", "not graded" (nobody's grade: the next run tries again) or "refused"
    (this machine may not judge; another may). checked, verdict: None where nothing was judged.
    isolation: how student code ran, "" where none did. machine: the name of the one that judged.
    """

    id: str
    status: str
    reason: str = ""
    notes: tuple[str, ...] = ()
    checked: Checked | None = None
    verdict: Verdict | None = None
    isolation: str = ""
    machine: str = field(default="", compare=False)

    def as_bytes(self) -> bytes:
        """JSON."""
        cells = handed_in(self.checked.notebook) if self.checked else None
        verdict = self.verdict.as_dict() if self.verdict else None
        return json.dumps(
            {
                "id": self.id,
                "status": self.status,
                "reason": self.reason,
                "notes": self.notes,
                "cells": cells,
                "verdict": verdict,
                "isolation": self.isolation,
                "machine": self.machine,
            }
        ).encode()


def without_grade(of: str, why: str, machine: str = "", status: str = "not graded") -> Ruling:
    """Nothing was judged, and this is why."""
    return Ruling(of, status, legible(why), machine=machine)


def merged(untimed: Ruling, timed: Ruling, assignment: Assignment) -> Ruling:
    """The ruling on a whole submission: the timed cells of `timed`, everything else of `untimed`."""
    first, second = untimed.verdict, timed.verdict
    if first is None or second is None:
        return untimed if first is None else replace(timed, checked=None)
    of_time = {spec.grade_id for spec in assignment.graded() if spec.rubric == "time"}
    fine = first.status == "graded"
    verdict = replace(
        first,
        status=second.status if fine else first.status,
        reason=second.reason if fine else first.reason,
        cells={key: second.cells[key] if key in of_time else cell for key, cell in first.cells.items()},
        seconds=round(first.seconds + second.seconds, 2),
        cell_errors=second.cell_errors | first.cell_errors,
    )
    return replace(untimed, id=timed.id, status=verdict.status, reason=verdict.reason, verdict=verdict)


def fault_of(problem: BaseException) -> str:
    """What is said of an error that nobody thought of."""
    return f"fault in the grader: {type(problem).__name__}: {str(problem)[:300]}"


def handed_in(notebook: NotebookDocument) -> list[HandedInCell]:
    """A restored notebook's cells, as a reader tells those of a submitted one."""
    cells: list[HandedInCell] = []
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        cells.append(
            {
                "cell_type": cell["cell_type"],
                "id": cell["id"],
                "about": {key: about.get(key, False) for key in MARKS},
                "grade_id": about.get("grade_id"),
                "source": cell["source"],
            }
        )
    return cells


def read_ruling(data: object, of: str, assignment: Assignment) -> Ruling:
    """The Ruling in an answer about the commission `of`. Raises BadRuling for anything else.

    Its cells become a notebook as submitted ones do: types, metadata and tests come from the released set.
    """
    if type(data) is not bytes or len(data) > MOST_BYTES:
        raise BadRuling(f"expected at most {MOST_BYTES // 2**20} MiB of JSON")
    try:
        told: dict[str, Any] = json.loads(data)
        _form()(told)
    except (ValueError, RecursionError) as problem:  # of fastjsonschema, too
        raise BadRuling(f"the answer is not of the form in ruling.yml: {str(problem)[:300]}") from None
    if told["id"] != of:
        raise BadRuling("the answer is about another submission")
    verdict = None if told["verdict"] is None else _verdict(told["verdict"], assignment)
    if (told["cells"] is None) is not (verdict is None) or (verdict and verdict.status != told["status"]):
        raise BadRuling("a verdict goes with the cells that were judged, and with its own status")
    try:
        found = None if told["cells"] is None else checked(told["cells"], assignment)
    except Malformed as malformed:
        raise BadRuling(f"its cells are no submission: {malformed}") from None
    return Ruling(
        of,
        told["status"],
        legible(told["reason"]),
        tuple(map(legible, told["notes"])),
        found,
        verdict,
        legible(told["isolation"]),
        legible(told["machine"]),
    )


@functools.cache
def _form() -> Callable[[object], object]:
    """Raises ValueError for data that is not of the form in ruling.yml."""
    text = Path(__file__).with_name("ruling.yml").read_text(encoding="utf-8")
    return fastjsonschema.compile(yaml.safe_load(text))


def _verdict(told: dict[str, Any], assignment: Assignment) -> Verdict:
    """A verdict that has just the cells of the released set, and in each at most its points."""
    specs = {spec.grade_id: spec for spec in assignment.graded()}
    if set(told["cells"]) != set(specs):
        raise BadRuling("the verdict has other cells than the problem set")
    for key, cell in told["cells"].items():
        spec, points = specs[key], cell["points"]
        same = (cell["grade_id"], cell["max"]) == (key, spec.points) and cell["task"] in (None, spec.task)
        fits = points is None or math.isfinite(points) and 0 <= points <= spec.points + TOLERANCE
        if not same or not fits or (points is None) is not (cell["state"] in ("ungraded", "manual")):
            raise BadRuling(f"the verdict on {key} does not fit the problem set")
        for line in cell["lines"]:
            if not (math.isfinite(line["max"]) and 0 <= line["points"] <= line["max"]):
                raise BadRuling(f"a row of {key} has {line['points']} of {line['max']} points")
    if not math.isfinite(told["seconds"]):
        raise BadRuling("the time that it took is no number")
    return Verdict.from_dict(told)
