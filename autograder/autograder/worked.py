"""What a student sees after full marks: a worked solution, another right answer, the next step on a GPU.

The sources are solutions/ and its after.yml, which only instructors have, and right answers of the test
corpus; none of them is part of the package that students install.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mistune import create_markdown

from autograder.gradebook import CourseGradebook
from autograder.layout import SOLUTIONS, Assignment, beside_solutions
from autograder.release.source import solved_cells, without_markers
from autograder.results import write_atomic
from autograder.similar.pairs import similarity
from autograder.similar.tokens import shingles
from autograder.user_error import UserError
from warplab.rendering import render

CORPUS = "autograder/tests/corpus"
html: Callable[[str], Any] = create_markdown()  # Markdown to HTML; tags in the source are escaped


@dataclass(frozen=True)
class Worked:
    """The worked solution of one graded cell. written: whether the cell is a written answer.

    answer: code; of a written answer HTML with the sample answer and its rubric. another: another right
    answer, as (HTML of what is different, code); None where the corpus has none. after: HTML of what to do
    next on a GPU.
    """

    name: str
    answer: str
    written: bool
    another: tuple[str, str] | None = None
    after: str = ""


def worked(root: Path, name: str) -> dict[str, Worked]:
    """{grade id of a test cell or written answer: Worked} of a set; {} where its solution is not here."""
    return dict(_of_cells(root, name))


def _of_cells(root: Path, name: str) -> Iterator[tuple[str, Worked]]:
    after = beside_solutions(root, "after.yml")
    code: list[str] = []
    for cell in solved_cells(root, name):
        about, plain = cell["metadata"].get("nbgrader", {}), without_markers(cell["source"])
        if about.get("grade") and about["solution"]:
            yield about["grade_id"], Worked(about["grade_id"], html(plain), True)
        elif about.get("solution"):
            code.append(plain)
        elif code and "warplab" in cell["metadata"]:
            task, answer = cell["metadata"]["warplab"]["task"], "\n\n\n".join(code)
            other = another_answer(root / CORPUS / task, answer)
            another = (html(other[0]), other[1]) if other else None
            yield about["grade_id"], Worked(task, answer, False, another, html(after.get(task) or ""))
            code = []


def another_answer(folder: Path, answer: str) -> tuple[str, str] | None:
    """(what is different, code) of the right answer in the corpus that is least similar to `answer`.

    Where the corpus has no such file, the first right edit of the solution: the lines that it replaces, and
    the new ones. None without either. folder: the task's folder in the corpus.
    """
    files = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("correct_*.py"))]
    if files:
        text = min(files, key=lambda text: similarity(shingles(text), shingles(answer)))
        _, told, code = text.split('"""', 2)
        return told.partition(": ")[2], code.strip()
    edits = folder / "edits.yml"
    known = yaml.safe_load(edits.read_text(encoding="utf-8")) if edits.exists() else {}
    for name, edit in known.items():
        if name.startswith("correct_") and "edits" in edit:
            parts = [f"in the place of\n{one['replace']}\n\nthis:\n{one['with']}" for one in edit["edits"]]
            return edit["what"], "\n\n".join(parts)
    return None


def write_worked(root: Path, assignment: Assignment, path: Path, grades: Path | None = None) -> None:
    """Write the page of worked solutions of a whole set to `path`.

    grades: the folder whose gradebook knows the due date; None to write without asking for it. Raises
    UserError before the due date, extensions included, and where the set's solution is not here.
    """
    found = worked(root, assignment.name)
    if not found:
        raise UserError(f"no solution of {assignment.name} in {root / SOLUTIONS}")
    if grades and (grades / "gradebook.db").exists():
        with CourseGradebook(grades) as book:
            if due := book.still_open(assignment):
                raise UserError(
                    f"{assignment.name} is due {due:%Y-%m-%d %H:%M} UTC, extensions included, and this page "
                    "has its solutions: nothing is written; --early writes it now"
                )
    page = render("autograder.report", "worked.html.j2", assignment=assignment, found=found.values())
    write_atomic(path, page.encode())
