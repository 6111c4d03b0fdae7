"""The way back: a source notebook that somebody edited in Jupyter becomes the solution file again."""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from autograder import layout
from autograder.release.release import solution_files, write_source
from autograder.release.source import source_notebook, stable_json
from autograder.results import write_atomic
from autograder.user_error import UserError, nearest

CELL = re.compile(r"(?m)^(?=# %%)")
Said = tuple[str, dict[str, Any], str]  # what a solution file says of a cell: type, marks, text


def import_edits(root: str | Path, name: str) -> tuple[Path, bool]:
    """Bring _build/source/<name> into solutions/. Returns (path of the solution file, whether it changed).

    Cells that nobody touched keep their text to the byte. Raises UserError where the edit is something that a
    solution file cannot say: a test without a task, other points than the task's, nbgrader's "manually graded
    task".
    """
    solutions = solution_files(root)
    if name not in solutions:
        raise UserError(f'no solution notebook for "{name}"{nearest(name, solutions)}')
    solution = solutions[name]
    edited = Path(root) / layout.SOURCE / name / f"{solution.stem}.ipynb"
    try:
        wanted = [_said(cell, edited) for cell in json.loads(edited.read_text(encoding="utf-8"))["cells"]]
    except FileNotFoundError:
        raise UserError(f"there is no {edited}; run `autograder release {name}` first") from None
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{edited} is not a notebook: {problem}") from None
    before = source_notebook(solution)
    known = [_said(cell, edited) for cell in before["cells"]]
    text = _text(solution.read_text(encoding="utf-8"), known, wanted)
    after = _checked(text, solution, edited, wanted)
    changed = stable_json(after) != stable_json(before)
    if changed:
        write_atomic(solution, text.encode())
    write_source(edited, stable_json(after), solution, name, edits_are_in=True)
    return solution, changed


def _said(cell: Mapping[str, Any], path: Path) -> Said:
    """What a solution file says of a cell. Raises UserError for what it cannot say."""
    about, ours = cell["metadata"].get("nbgrader", {}), cell["metadata"].get("warplab", {})
    marks: dict[str, Any] = {}
    if cell["metadata"].get("tags"):
        marks["tags"] = cell["metadata"]["tags"]
    grade_id = about.get("grade_id")
    without_task = about.get("grade") and not about.get("solution") and "task" not in ours
    if about.get("task") or without_task:
        raise UserError(
            f'{path}: the cell "{grade_id}" is graded, but no task of warplab/tasks stands behind it; '
            'write a task, and mark the cell grade="psNN/task" in solutions/'
        )
    if about.get("grade") and about.get("solution"):
        marks |= {"manual": grade_id, "points": about["points"]}
    elif about.get("grade"):
        marks |= {"grade": ours["task"]} | ({"rubric": ours["rubric"]} if "rubric" in ours else {})
        if "points" in about:
            marks["points"] = about["points"]
    elif about.get("solution"):
        marks |= {"solution": grade_id}
    return cell["cell_type"], marks, "".join(cell["source"]).strip("\n")


def _text(old: str, known: Sequence[Said], wanted: Sequence[Said]) -> str:
    """The solution file's text: the old one's head, and the text of every cell that is in it as it was."""
    head, *chunks = CELL.split(old)
    kept = dict(zip(map(repr, known), chunks)) if len(chunks) == len(known) else {}
    cells = "".join(kept.get(repr(cell)) or _chunk(*cell) for cell in wanted)
    return head + cells.rstrip("\n") + "\n"


def _chunk(cell_type: str, marks: Mapping[str, Any], source: str) -> str:
    """One cell in py:percent. The points of a test cell are its task's, so they are not written."""
    import jupytext

    own = {key: value for key, value in marks.items() if key != "points" or "grade" not in marks}
    cell: dict[str, Any] = {"cell_type": cell_type, "id": "one", "metadata": own, "source": source}
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    bare = {"jupytext": {"notebook_metadata_filter": "-all"}}
    only = nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell)], metadata=bare)
    return jupytext.writes(only, fmt="py:percent").strip("\n") + "\n\n"


def _checked(text: str, solution: Path, edited: Path, wanted: Sequence[Said]) -> dict[str, Any]:
    """The source notebook that `text` gives. Raises UserError unless it says what the edited one does."""
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch) / solution.name
        trial.write_text(text, encoding="utf-8")
        try:
            after = source_notebook(trial)
        except UserError as problem:
            raise UserError(str(problem).replace(str(trial), str(edited))) from None
    for got, want in zip((_said(cell, edited) for cell in after["cells"]), wanted, strict=True):
        if got != want:
            raise UserError(
                f"{edited}: the cell that begins {want[2][:50]!r} cannot be said in {solution.name}: "
                f"it would have {got[1]}, and the notebook says {want[1]}; "
                "points and ids of tests belong to warplab/tasks"
            )
    return after
