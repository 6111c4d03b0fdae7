"""Questions about a student's submission, from the judged notebooks and counts; the same on every run.

A student's code is matched line by line, as text of limited length; it is never parsed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autograder.judge.judge import legible
from autograder.layout import Assignment, first_lines
from autograder.report.page import judged_notebooks
from autograder.results import Results, write_atomic
from autograder.user_error import UserError, nearest
from warplab.rendering import render
from warplab.tasks.rubric import number

MOST, LEAST = 8, 4  # questions on a sheet
OF_A_CELL = 2  # questions about one cell before it is another cell's turn
AROUND, WIDTH = 3, 110  # lines shown before and after, characters of a line
COMMENT = re.compile(r"\s*(?:#|//).*")
QUESTIONS = yaml.safe_load(Path(__file__).with_name("questions.yml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class OralQuestion:
    """A question about a cell. answer: what to look for. listing: the lines around the one asked about.

    Each is (number, text, whether it is asked about).
    """

    cell: str
    ask: str
    answer: str
    listing: list[tuple[int, str, bool]]


def questions_for(assignment: Assignment, cells: list[Any], verdict: Mapping[str, Any]) -> list[OralQuestion]:
    """The questions about one submission: one of each kind, spread over its cells, then some about counts.

    cells: of the judged notebook. verdict: the stored one.
    """
    found: list[tuple[int, int, OralQuestion]] = []
    for cell in cells:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        spec = assignment.cells.get(name)
        if spec and spec.kind == "solution" and cell["source"].strip() != spec.source.strip():
            asked = list(_of_lines(name, cell["source"], spec.source))
            found += [(place // OF_A_CELL, kind, one) for place, (kind, one) in enumerate(asked)]
    chosen: dict[int, OralQuestion] = {}
    more: list[OralQuestion] = []
    for _, kind, one in sorted(found, key=lambda one: one[:2]):
        if chosen.setdefault(kind, one) is not one:
            more.append(one)
    asked = [*list(chosen.values())[: MOST - 2], *more[: max(0, LEAST - len(chosen))]]
    return [*asked, *list(_of_counts(verdict))[:2]]


def _of_lines(name: str, source: str, stub: str) -> Iterator[tuple[int, OralQuestion]]:
    """Yield (index in QUESTIONS, OralQuestion) for each kind of question that a line in `source` matches.

    stub: the cell as released; its lines are not asked about.
    """
    lines = [legible(line[:WIDTH]) for line in first_lines(source)[0]]
    taken = {line.strip() for line in stub.splitlines()}  # lines of the stub or asked about already
    for kind, about in enumerate(QUESTIONS):
        for at, line in enumerate(lines):
            match = re.search(about["line"], COMMENT.sub("", line).strip())
            if match and line.strip() not in taken:
                taken.add(line.strip())
                near = range(max(0, at - AROUND), min(len(lines), at + AROUND + 1))
                ask = about["ask"].format(line=at + 1, **match.groupdict())
                listing = [(place + 1, lines[place], place == at) for place in near]
                yield kind, OralQuestion(name, ask, " ".join(about["answer"].split()), listing)
                break


def _of_counts(verdict: Mapping[str, Any]) -> Iterator[OralQuestion]:
    """Yield a question for each task about the sectors that one case's load requests touched."""
    for cell in (verdict.get("cells") or {}).values():
        rows = ((line, case, of) for line in cell["lines"] for case, of in line["counters"].items())
        known = ((line, case, of) for line, case, of in rows if of.get("global_read.requests"))
        for line, case, of in [*known][:1]:
            requests, sectors = of["global_read.requests"], of.get("global_read.sectors", 0)
            ask = f"For {legible(case)} your kernel made {number(requests)} load requests to global memory. "
            ask += "How many sectors of 32 bytes did they touch, about, and which line made the most?"
            told = f"{number(sectors)}, {sectors / requests:.3g} a request, as the judge counted"
            blamed = f"; it blames line {line['access']['line']}" if line["access"] else ""
            more = f"{told}{blamed}. `warplab.profile` in the notebook counts again."
            yield OralQuestion(cell["task"] or "", ask, more, [])


def write_sheets(assignment: Assignment, grades: Path, students: list[str], folder: Path) -> Iterator[Path]:
    """Write a page for each student (default: all who were judged), and yield its path.

    Raises UserError for an unknown name, and where nobody was judged.
    """
    notebooks, records = dict(judged_notebooks(assignment, grades)), Results(grades, assignment.name).all()
    if name := next((one for one in students if one not in notebooks), "" if notebooks else "anybody"):
        raise UserError(f"no judged notebook of {name} in {grades}{nearest(name, notebooks)}")
    for student in students or sorted(notebooks):
        asked = questions_for(assignment, notebooks[student], records[student]["verdict"] or {})
        page = render("autograder.oral", "oral.html.j2", assignment=assignment, student=student, asked=asked)
        write_atomic(folder / f"{student}.html", page.encode())
        yield folder / f"{student}.html"
