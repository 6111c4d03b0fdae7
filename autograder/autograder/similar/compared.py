"""The pairs of a graded class: found in the notebooks that the judge wrote, shown with both texts."""

from pathlib import Path
from typing import Any

from autograder.layout import Assignment, first_lines
from autograder.report import judged_notebooks
from autograder.results import write_atomic
from autograder.similar.pairs import Pair, own, pairs, threshold
from autograder.similar.tokens import lines_of
from warplab.rendering import render

OWN_CELLS = "cells of their own"
MOST_SHOWN, MOST_TOLD = 50, 500  # pairs whose texts stand on the page, pairs in its table


def answers_of(assignment: Assignment, grades: Path) -> dict[str, dict[str, str]]:
    """{cell: {student: text}} of the code that students wrote. UserError where nothing is graded.

    What somebody wrote into further cells, and only calls in an answer, stands under OWN_CELLS.
    """
    found: dict[str, dict[str, str]] = {
        name: {}
        for name, spec in assignment.cells.items()
        if spec.kind == "solution" and spec.cell_type == "code"
    } | {OWN_CELLS: {}}
    given = assignment.given()
    for student, cells in judged_notebooks(assignment, grades):
        for cell in cells:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id", OWN_CELLS)
            text = cell["source"]
            if name in found and cell["cell_type"] == "code" and text.strip() not in given:
                found[name][student] = f"{found[name].get(student, '')}\n{text}".lstrip("\n")
    return found


def given_in(assignment: Assignment, cell: str) -> str:
    """The code that came with the notebook: the cell's stub, or all stubs, and the given cells."""
    stubs = [spec.source for name, spec in assignment.cells.items() if cell in (name, OWN_CELLS)]
    return "\n".join([*stubs, *sorted(assignment.given())])


def similar_answers(assignment: Assignment, grades: Path, at_least: float | None = None) -> list[Pair]:
    """Pairs of one set, the most similar first. at_least: 0 to 1 (default: threshold())."""
    least = threshold() if at_least is None else at_least
    found = [
        pair
        for cell, answers in answers_of(assignment, grades).items()
        for pair in pairs(cell, answers, given_in(assignment, cell), least)
    ]
    return sorted(found, key=lambda pair: (-pair.similarity, pair.cell, pair.first, pair.second))


def write_page(assignment: Assignment, grades: Path, found: list[Pair], path: Path, at_least: float) -> None:
    """One self-contained page with both texts of each pair, what both have marked."""
    answers = answers_of(assignment, grades)
    shown = [_sides(assignment, pair, answers[pair.cell]) for pair in found[:MOST_SHOWN]]
    page = render(
        "autograder.similar",
        "similar.html.j2",
        assignment=assignment,
        pairs=found,
        shown=shown,
        most=MOST_TOLD,
        least=at_least,
    )
    write_atomic(path, page.encode())


def _sides(assignment: Assignment, pair: Pair, answers: dict[str, str]) -> dict[str, Any]:
    given = given_in(assignment, pair.cell)
    texts = answers[pair.first], answers[pair.second]
    shared = set(own(texts[0], given) & own(texts[1], given))
    sides = [
        {
            "student": student,
            "lines": [
                (line, number in marked) for number, line in enumerate((*lines, *([more] if more else ())))
            ],
        }
        for student, text in zip((pair.first, pair.second), texts, strict=True)
        for (lines, more), marked in [(first_lines(text), lines_of(text, shared))]
    ]
    return {"pair": pair, "sides": sides}
