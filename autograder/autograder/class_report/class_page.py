"""The class report as one HTML file: no script, no request to a server; links lead to the feedback pages."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

from autograder.class_report.class_figures import scores, tasks, times
from autograder.class_report.overview import SetOverview, overview
from autograder.class_report.predictions import predictions
from autograder.gradebook.export import figure
from autograder.gradebook.passing_on import read_standings
from autograder.gradebook.standing import Standing
from autograder.layout import Assignment, load_assignment
from autograder.report.page import Pages
from autograder.results import Results, write_atomic
from autograder.similar import groups, similar_answers, threshold
from warplab.rendering import render
from warplab.tasks.feedback import CODE

MOST_ROWS = 15  # rubric rows in a set's table
MOST_GROUPS = 5  # groups of similar answers named for a set


def write_report(root: Path, names: Sequence[str], grades: Path, path: Path) -> list[SetOverview]:
    """Write the page on these sets (default: all graded ones). Raises UserError where nothing is graded."""
    for name in names:
        load_assignment(root, name)  # raises UserError for an unknown name
    found = read_standings(grades, names)
    assignments = {
        name: load_assignment(root, name) for name in dict.fromkeys(one.assignment for one in found)
    }
    sets = [
        overview(assignment, [one for one in found if one.assignment == name], Results(grades, name).all())
        for name, assignment in assignments.items()
    ]
    alike = {name: groups(similar_answers(assignment, grades)) for name, assignment in assignments.items()}
    page = render(
        "autograder.class_report",
        "class_page.html.j2",
        sets=sets,
        groups=alike,
        most_groups=MOST_GROUPS,
        predicted={name: predictions(assignment, root, grades) for name, assignment in assignments.items()},
        least=threshold(),
        figures=figures(sets),
        index=_index(sets, assignments, grades, path.parent),
        today=date.today().isoformat(),
        most_rows=MOST_ROWS,
        points=figure,
        code_spans=CODE.split,
    )
    write_atomic(path, page.encode())
    return sets


def figures(sets: Sequence[SetOverview]) -> dict[str, Any]:
    """{name: HTML} of the plots that have data. The HTML is trusted: matplotlib escapes the texts in it."""
    drawn: dict[str, Any] = {}
    if any(one.shares for one in sets):
        drawn["scores"] = scores(sets)._repr_html_()
    for one in sets:
        if one.tasks:
            drawn[f"tasks {one.name}"] = tasks(one.tasks)._repr_html_()
        if one.timings:
            drawn[f"times {one.name}"] = times(one.timings)._repr_html_()
    return drawn


def _index(
    sets: Sequence[SetOverview], assignments: dict[str, Assignment], grades: Path, folder: Path
) -> dict[str, dict[str, dict[str, str]]]:
    """{student: {set: {"text": the cell's text, "address": of the feedback page, or ""}}}."""
    index: dict[str, dict[str, dict[str, str]]] = {}
    for one in sets:
        for standing in one.standings:
            page = Pages(grades, assignments[one.name]).feedback(standing.student)
            entry = {"text": _cell(standing), "address": _address(page, folder) if page.exists() else ""}
            index.setdefault(standing.student, {})[one.name] = entry
    return dict(sorted(index.items()))


def _cell(standing: Standing) -> str:
    if not standing.has_score:
        return standing.status
    waits = standing.open("ungraded") + standing.open("manual")
    return figure(standing.score) + (f" (+{figure(waits)} open)" if waits else "")


def _address(page: Path, folder: Path) -> str:
    """A relative link, so that the folder may be moved; "./" keeps "a:b" from being read as a protocol."""
    return "./" + quote(os.path.relpath(page, folder), errors="surrogateescape")
