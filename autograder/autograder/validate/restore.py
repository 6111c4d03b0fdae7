"""Combines submitted with released cells: students' text is kept, everything else comes from the release."""

import copy
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.layout import Assignment, CellSpec, NotebookCell, NotebookDocument
from autograder.reader.contents import HandedInCell, shown


@dataclass(frozen=True)
class Defect:
    """Something wrong with a notebook. code: a fixed word for programs. text: a sentence for the student.

    fatal: whether the notebook cannot be graded; otherwise it was put right, or is a note.
    """

    code: str
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


def restore(given: Sequence[HandedInCell], assignment: Assignment) -> tuple[NotebookDocument, list[Defect]]:
    """Returns (restored notebook, defects). given: the submitted cells.

    The notebook has the student's cells in their order, without outputs. Cells with a grade id have the
    released metadata and id, test cells the released text; deleted test cells are back. Sources are single
    strings.
    """
    defects = _problems(given, assignment)
    cells: list[NotebookCell] = []
    taken = {spec.cell_id for spec in assignment.cells.values()}
    fresh = itertools.count(len(taken))
    for cell in given:
        spec = assignment.cells.get(cell["grade_id"]) if cell["grade_id"] is not None else None
        if spec is None:
            cells.append(_student_cell(cell, taken, fresh))
        else:
            cells.append(_released_cell(cell, spec, defects))
    _put_back(cells, assignment)
    metadata = copy.deepcopy(assignment.document["metadata"])
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, defects


def _problems(given: Sequence[HandedInCell], assignment: Assignment) -> list[Defect]:
    """The Defects of cells that are unknown, duplicated or missing."""
    defects: list[Defect] = []

    def found(code: str, text: str, fatal: bool = True) -> None:
        defects.append(Defect(code, text, fatal))

    fresh = f"a fresh {assignment.filename}"
    counts = Counter(cell["grade_id"] for cell in given if cell["grade_id"] is not None)
    for grade_id, count in counts.items():
        if grade_id not in assignment.cells:
            where = f'the cell "{shown(grade_id, 40)}" is not part of {assignment.name}'
            found("unknown-cell", f"{where}: copy your answers into {fresh}")
        elif count > 1:
            found("duplicate-cell", f'the cell "{grade_id}" is there {count} times: delete the copies')
    ids = Counter(cell["id"] for cell in given if cell["id"] is not None)
    for identity, count in ids.items():
        if count > 1:
            found("duplicate-id", f'{count} cells share the id "{identity[:40]}"; they got new ones', False)
    for grade_id, spec in assignment.cells.items():
        if grade_id in counts:
            continue
        if spec.kind == "grade":
            found("missing-test", f'the test cell "{grade_id}" was deleted; it was put back', False)
        else:
            found("missing-cell", f'the cell "{grade_id}" is missing: put your answer back into {fresh}')
    return defects


def _released_cell(cell: HandedInCell, spec: CellSpec, defects: list[Defect]) -> NotebookCell:
    """A cell with a grade id as it was released, with the student's text unless it is a test cell.

    Adds what had to be restored to `defects`.
    """
    name = spec.grade_id
    if cell["cell_type"] != spec.cell_type:
        text = f'the cell "{name}" was made a {cell["cell_type"]} cell; it counts as {spec.cell_type}'
        defects.append(Defect("changed-type", text, fatal=False))
    if _trusted(cell["about"]) != _trusted(spec.metadata["nbgrader"]):
        text = f'the grading metadata of "{name}" was changed; it was restored'
        defects.append(Defect("edited-metadata", text, fatal=False))
    source = cell["source"]
    if spec.kind == "grade" and source.strip() != spec.source.strip():
        text = f'the test cell "{name}" was changed; it was restored'
        defects.append(Defect("edited-test", text, fatal=False))
        source = spec.source
    return _cell(spec.cell_type, spec.cell_id, copy.deepcopy(spec.metadata), source)


def _student_cell(cell: HandedInCell, taken: set[str], fresh: Iterator[int]) -> NotebookCell:
    """A cell without a grade id: its text and type without metadata, and an id that is not in `taken`."""
    identity = cell["id"]
    if identity is None or identity in taken:
        identity = next(name for number in fresh if (name := f"s-{number}") not in taken)
    taken.add(identity)
    return _cell(cell["cell_type"], identity, {}, cell["source"])


def _put_back(cells: list[NotebookCell], assignment: Assignment) -> None:
    """Insert deleted test cells behind the cell that precedes them in the release."""
    place = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if "nbgrader" in cell["metadata"]
    }
    before = None
    for grade_id, spec in assignment.cells.items():
        if grade_id not in place and spec.kind == "grade":
            cell = _cell(spec.cell_type, spec.cell_id, copy.deepcopy(spec.metadata), spec.source)
            at = 0 if before is None else next(i for i, other in enumerate(cells) if other is before) + 1
            cells.insert(at, cell)
            place[grade_id] = cell
        before = place.get(grade_id, before)


def _cell(cell_type: str, identity: str, metadata: dict[str, Any], source: str) -> NotebookCell:
    """A cell without outputs."""
    cell: NotebookCell = {"cell_type": cell_type, "id": identity, "metadata": metadata, "source": source}
    if cell_type == "code":
        cell["execution_count"], cell["outputs"] = None, []
    return cell


def _trusted(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: about.get(key, False) for key in ("grade", "solution", "locked", "points")}
