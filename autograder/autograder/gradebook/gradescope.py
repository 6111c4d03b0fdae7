"""A results.json for Gradescope, by its autograder specification, of what was decided here.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ has the format. The score at the top counts; a
check that is not graded has no score of its own, so that nobody reads it as lost.
"""

from typing import Any

from autograder.gradebook.export import figure
from autograder.gradebook.standing import CellPoints, Standing
from autograder.results import StoredRecord


def results_json(
    one: Standing, record: StoredRecord, left_out: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The file's content. left_out: grade cells that count for nobody."""
    verdict = record["verdict"] or {"cells": {}}
    points = {cell.name: cell for cell in one.cells}
    tests: list[dict[str, Any]] = []
    for name, cell in verdict["cells"].items():
        if name not in left_out:
            tests += _tests(name, cell, points.get(name))
    return {
        "score": round(one.score, 2),
        "output": _summary(one, record),
        "output_format": "text",
        "tests": tests,
        "extra_data": {"attempt": one.attempt, "late_penalty": round(one.penalty, 2), "status": one.status},
    }


def _tests(name: str, cell: dict[str, Any], now: CellPoints | None) -> list[dict[str, Any]]:
    """One entry for each row of a judged cell; one for a cell that a person grades or has changed."""
    if now is None or now.points is None:
        return [{"name": cell["task"] or name, "output": "open"}]
    if (now.points, now.max) != (cell["points"], cell["max"]) or not cell["lines"]:
        entry = {"name": cell["task"] or name, "output": "by hand, or changed after hand-in"}
        return [entry | {"score": round(now.points, 2), "max_score": round(now.max, 2)}]
    return [_row(cell["task"], line) for line in cell["lines"]]


def _row(task: str, line: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "name": f"{task}: {line['title'] or line['key']}",
        "output": line["reason"],
        "output_format": "text",
    }
    if line["state"] == "ungraded":
        return entry
    status = "passed" if line["state"] == "full" else "failed"
    return entry | {"score": line["points"], "max_score": line["max"], "status": status}


def _summary(one: Standing, record: StoredRecord) -> str:
    told = [f"{figure(one.score)} of {figure(one.decided)} points so far."]
    if one.penalty:
        told.append(f"{figure(one.penalty)} were taken off because it came late.")
    if one.open("manual"):
        told.append(f"{figure(one.open('manual'))} points are graded by a person.")
    return "\n".join([*told, *record["notes"]])
