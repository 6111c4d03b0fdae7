"""The similar pairs of a graded class, from the judged notebooks, and the page that shows both texts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.layout import Assignment, first_lines
from autograder.report.page import judged_notebooks
from autograder.results import write_atomic
from autograder.similar.pairs import Pair, own_shingles, pairs, threshold
from autograder.similar.tokens import lines_of, shingles
from warplab.rendering import render

OWN_CELLS = "cells of their own"
MOST_SHOWN, MOST_TOLD = 50, 500  # pairs whose texts are on the page, pairs in its table


def answers_of(assignment: Assignment, grades: Path) -> dict[str, dict[str, str]]:
    """{cell: {student: text}} of the code that students wrote. Raises UserError where nothing is graded.

    Code in cells that a student added is under OWN_CELLS.
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
    """The code that was released for a cell: its stub (for OWN_CELLS all stubs), and the given cells."""
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


@dataclass(frozen=True)
class SimilarGroup:
    """Students linked by similar pairs, directly or through others, such as all copies of one answer."""

    students: tuple[str, ...]
    pairs: tuple[Pair, ...]

    @property
    def most(self) -> float:
        """The similarity of the most similar pair."""
        return max(pair.similarity for pair in self.pairs)

    @property
    def cells(self) -> dict[str, int]:
        """{cell: number of pairs in it}, the largest first."""
        return dict(Counter(pair.cell for pair in self.pairs).most_common())


def groups(found: Iterable[Pair]) -> list[SimilarGroup]:
    """The connected groups of students, the largest first."""
    members: list[tuple[set[str], list[Pair]]] = []
    for pair in found:
        both = {pair.first, pair.second}
        joined = [one for one in members if one[0] & both]
        members = [one for one in members if not one[0] & both]
        students = both.union(*(one[0] for one in joined))
        members.append((students, [*(pair for one in joined for pair in one[1]), pair]))
    made = [SimilarGroup(tuple(sorted(students)), tuple(linked)) for students, linked in members]
    return sorted(made, key=lambda one: (-len(one.students), -one.most))


def write_page(assignment: Assignment, grades: Path, found: list[Pair], path: Path) -> None:
    """Write a self-contained page with both texts of each pair; lines that both have are marked."""
    answers = answers_of(assignment, grades)
    shown = [_sides(assignment, pair, answers[pair.cell]) for pair in found[:MOST_SHOWN]]
    told = {"assignment": assignment, "pairs": found, "groups": groups(found), "shown": shown}
    page = render("autograder.similar", "similar.html.j2", most=MOST_TOLD, least=threshold(), **told)
    write_atomic(path, page.encode())


def _sides(assignment: Assignment, pair: Pair, answers: dict[str, str]) -> dict[str, Any]:
    given = given_in(assignment, pair.cell)
    texts = answers[pair.first], answers[pair.second]
    shared = set(own_shingles(texts[0], given) & own_shingles(texts[1], given))
    sides = [
        {
            "student": student,
            "lines": [
                (line, "both" if number in marked else "given" if number in came else "")
                for number, line in enumerate((*lines, *([more] if more else ())))
            ],
        }
        for student, text in zip((pair.first, pair.second), texts, strict=True)
        for (lines, more), marked, came in [
            (first_lines(text), lines_of(text, shared), lines_of(text, set(shingles(given))))
        ]
    ]
    return {"pair": pair, "sides": sides}
