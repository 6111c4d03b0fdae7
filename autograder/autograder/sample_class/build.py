"""Makes the sample submissions from released notebooks and solutions by the edits of class.yml.

The bytes are the same on every run.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

import yaml

from autograder.layout import CellSpec, NotebookDocument, load_assignment
from autograder.release.source import solved_cells, stable_json, without_markers
from autograder.results import write_atomic
from autograder.user_error import UserError

CLASS = Path(__file__).with_name("class.yml")


class Edit(TypedDict):
    """One edit of a cell; the head of class.yml documents the format."""

    cell: str
    old: NotRequired[str]
    new: NotRequired[str]
    blank: NotRequired[bool]
    drop: NotRequired[bool]


class Recipe(TypedDict):
    """One submission in class.yml; the head of that file documents the format."""

    start: str
    edits: NotRequired[list[Edit]]
    cut: NotRequired[float]


def members() -> dict[str, dict[str, Recipe]]:
    """The contents of class.yml: {"ps01": {"perfect": {...}, ...}, ...}."""
    return yaml.safe_load(CLASS.read_text(encoding="utf-8"))


def build_class(root: str | Path, name: str, folder: str | Path) -> None:
    """Write the submissions of one problem set to FOLDER/<student>/<notebook>.

    Only files that change are touched.
    Raises UserError when an edit no longer fits the solution.
    """
    for student, recipe in members()[name].items():
        data = submission(root, name, recipe, student)
        target = Path(folder) / student / load_assignment(root, name).filename
        if not target.exists() or target.read_bytes() != data:
            write_atomic(target, data)


def submission(root: str | Path, name: str, recipe: Recipe, student: str) -> bytes:
    """The bytes of one submitted notebook."""
    assignment = load_assignment(root, name)
    solutions = {cell["id"]: cell["source"] for cell in solved_cells(root, name)}
    notebook = copy.deepcopy(assignment.document)
    answers = {grade_id: spec for grade_id, spec in assignment.cells.items() if spec.kind != "grade"}
    if recipe["start"] == "solution":
        for cell in notebook["cells"]:
            if cell["id"] in answers:
                cell["source"] = without_markers(solutions[cell["id"]])
    for edit in recipe.get("edits", ()):
        apply(edit, notebook, answers, f"{name}/{student}")
    data = stable_json(notebook)
    return data[: int(len(data) * recipe["cut"])] if "cut" in recipe else data


def apply(edit: Edit, notebook: NotebookDocument, answers: Mapping[str, CellSpec], where: str) -> None:
    """Apply one edit to the notebook, in place. where: names the submission in the error.

    Raises UserError if the edit no longer fits.
    """
    if edit["cell"] not in answers:
        raise UserError(f"sample class {where}: no cell {edit['cell']!r} to edit; put class.yml right")
    cell = next(cell for cell in notebook["cells"] if cell["id"] == answers[edit["cell"]].cell_id)
    if edit.get("drop"):
        notebook["cells"].remove(cell)
    elif edit.get("blank"):
        cell["source"] = answers[edit["cell"]].source
    else:
        old, new = edit.get("old", ""), edit.get("new", "")
        count = cell["source"].count(old)
        if count != 1:
            raise UserError(
                f"sample class {where}: {old[:50]!r} stands {count} times in {edit['cell']}, "
                "expected once; put class.yml right"
            )
        cell["source"] = cell["source"].replace(old, new)
