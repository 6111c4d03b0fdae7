"""A ranking of a class in one task by what was counted or timed, under pseudonyms, for those who want one.

It uses judged results only, and only of answers whose results are all right.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.class_report.overview import Records
from autograder.csv_tables import guard
from autograder.layout import load_assignment
from autograder.results import Results, secret_seed, write_atomic, write_rows
from autograder.user_error import UserError, nearest
from warplab.rendering import render
from warplab.tasks import registry
from warplab.tasks.declaration import Task

MANNERS = "brisk calm clever early gentle keen lucky merry nimble patient quiet quick steady sunny swift tidy"
ANIMALS = "badger bear crane deer falcon fox hare heron ibex lark lynx otter owl seal stork wren"
TIMED = ("time.ratio", "times the time of the library on the same device")


@dataclass(frozen=True)
class Ranking:
    """The ranking in one rubric row. places: (pseudonym, the count or time in `case`), the least first."""

    title: str
    unit: str
    case: str
    places: list[tuple[str, float]]


def write_table(root: Path, task_name: str, grades: Path, page: Path) -> Path:
    """Write the page on one task, and beside it a CSV file {student: pseudonym}. Returns that file's path.

    Raises UserError for an unknown task, and where nobody's answer has all its results right.
    """
    if task_name not in registry.names():
        raise UserError(f"no task is called {task_name!r}{nearest(task_name, registry.names())}")
    assignment, task = load_assignment(root, task_name.partition("/")[0]), registry.get(task_name)
    records = Results(grades, assignment.name).all()
    names = pseudonyms(records, secret_seed(grades))
    found = [one for one in rankings(task, records, names) if one.places]
    if not found:
        raise UserError(f"nobody's answer to {task_name} has all its results right and a row that counts")
    folder = "autograder.class_report"
    text = render(folder, "class_table.html.j2", task=task_name, title=assignment.notebook, rankings=found)
    write_atomic(page, text.encode())
    listed = page.with_suffix(".names.csv")
    listing = [(guard(student), name) for student, name in sorted(names.items())]
    write_rows(listed, [("student", "name"), *listing])
    return listed


def pseudonyms(students: Iterable[str], seed: int) -> dict[str, str]:
    """{student: pseudonym}, the same in every run with this grades folder's secret seed."""
    every = [f"{manner} {animal}" for manner in MANNERS.split() for animal in ANIMALS.split()]
    given: dict[str, str] = {}
    for student in sorted(students):
        digest = hashlib.sha256(f"{seed} {student}".encode("utf-8", "surrogatepass")).digest()
        at, taken = int.from_bytes(digest[:8]), len(given) // len(every)
        while (name := every[at % len(every)] + (f" {taken + 1}" if taken else "")) in given.values():
            at += 1
        given[student] = name
    return given


def rankings(task: Task, records: Records, names: Mapping[str, str]) -> list[Ranking]:
    """A Ranking for each row that counts or times, in the one case on which most students were judged.

    records: the stored results. names: {student: pseudonym}.
    """
    lines = {student: _lines(record, task.name) for student, record in records.items()}
    right = {
        student: of
        for student, of in lines.items()
        if of and all(line["state"] == "full" for line in of.values() if line["kind"] == "correctness")
    }
    return [_ranking(task, item, right, names) for item in task.items if item.kind != "correctness"]


def _lines(record, task: str) -> dict[str, dict]:
    cells = (record["verdict"] or {"cells": {}})["cells"].values()
    return {line["key"]: line for cell in cells if cell["task"] == task for line in cell["lines"]}


def _ranking(task: Task, item, right, names) -> Ranking:
    counter, unit = TIMED if item.kind == "time" else _counted(task, item.key)
    counted = [
        (case, student, math.fsum(counters.get(one, math.nan) for one in counter.split(" + ")))
        for student, lines in right.items()
        if item.key in lines and lines[item.key]["state"] != "ungraded"
        for case, counters in lines[item.key]["counters"].items()
    ]
    known = [one for one in counted if math.isfinite(one[2])]
    case = Counter(case for case, _, _ in known).most_common(1)[0][0] if known else ""
    places = [(names[student], total) for where, student, total in known if where == case]
    return Ranking(item.title, unit, case, sorted(places, key=lambda place: (place[1], place[0])))


def _counted(task: Task, key: str) -> tuple[str, str]:
    """(counters, unit) that a structure row bounds; they are the same for all its cases."""
    bound = next(task.bounds_of(case)[key] for case in task.cases(0) if case.item == key)
    return bound.counter, bound.unit or bound.counter
