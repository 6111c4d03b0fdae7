"""Put the submitted cells against the released ones: what the student may write is kept, all else comes from the release."""

import copy
import re
from collections import Counter

CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def restore(document, assignment, defect):
    """Returns (notebook, defects). `defect` makes one: defect(code, text, fatal).

    The notebook holds the student's cells in their order, without outputs; every cell with a grade id carries the released
    metadata and id, test cells the released text, and deleted test cells are back. Sources are single strings.
    """
    given = [_plain(cell) for cell in document["cells"]]
    defects = _problems(given, assignment, defect)
    cells, taken = [], set(spec.cell_id for spec in assignment.cells.values())
    for cell in given:
        spec = assignment.cells.get(cell["grade_id"])
        cells.append(_student_cell(cell, taken) if spec is None else _released_cell(cell, spec, defects, defect))
    _put_back(cells, assignment)
    metadata = copy.deepcopy(assignment.document["metadata"])
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, defects


def _problems(given, assignment, defect):
    """What makes the notebook ungradable: cells that are unknown, doubled, or gone."""
    defects = []
    counts = Counter(cell["grade_id"] for cell in given if cell["grade_id"] is not None)
    for grade_id, count in counts.items():
        if grade_id not in assignment.cells:
            defects.append(
                defect(
                    "unknown-cell",
                    f'the cell "{_short(grade_id)}" is not part of {assignment.name}: copy your answers into a fresh {assignment.filename}',
                )
            )
        elif count > 1:
            defects.append(defect("duplicate-cell", f'the cell "{grade_id}" is there {count} times: delete the copies'))
    ids = Counter(cell["id"] for cell in given if cell["id"] is not None)
    for identity, count in ids.items():
        if count > 1:
            defects.append(defect("duplicate-id", f'{count} cells share the id "{_short(identity)}"; they got new ones', False))
    for grade_id, spec in assignment.cells.items():
        if grade_id in counts:
            continue
        if spec.kind == "grade":
            defects.append(defect("missing-test", f'the test cell "{grade_id}" was deleted; it was put back', False))
        else:
            defects.append(
                defect("missing-cell", f'the cell "{grade_id}" is missing: put your answer back into a fresh {assignment.filename}')
            )
    return defects


def _released_cell(cell, spec, defects, defect):
    if cell["cell_type"] != spec.cell_type:
        defects.append(
            defect("changed-type", f'the cell "{spec.grade_id}" was made a {cell["cell_type"]} cell; it counts as {spec.cell_type}', False)
        )
    if _trusted(cell["about"]) != _trusted(spec.metadata["nbgrader"]):
        defects.append(defect("edited-metadata", f'the grading metadata of "{spec.grade_id}" was changed; it was restored', False))
    source = cell["source"]
    if spec.kind == "grade" and source.strip() != spec.source.strip():
        defects.append(defect("edited-test", f'the test cell "{spec.grade_id}" was changed; it was restored', False))
        source = spec.source
    return _cell(spec.cell_type, spec.cell_id, copy.deepcopy(spec.metadata), source)


def _student_cell(cell, taken):
    """A cell of the student's own, or a given one: text and type, no metadata that could mean anything to a grader."""
    identity = cell["id"]
    if identity is None or identity in taken:
        number = len(taken)
        while f"s-{number}" in taken:
            number += 1
        identity = f"s-{number}"
    taken.add(identity)
    return _cell(cell["cell_type"], identity, {}, cell["source"])


def _put_back(cells, assignment):
    """Insert deleted test cells behind the released cell that stands before them."""
    place = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if "nbgrader" in cell["metadata"]}
    before = None
    for grade_id, spec in assignment.cells.items():
        if grade_id not in place and spec.kind == "grade":
            cell = _cell(spec.cell_type, spec.cell_id, copy.deepcopy(spec.metadata), spec.source)
            at = 0 if before is None else next(i for i, other in enumerate(cells) if other is before) + 1
            cells.insert(at, cell)
            place[grade_id] = cell
        before = place.get(grade_id, before)


def _plain(cell):
    about = cell["metadata"].get("nbgrader")
    about = about if isinstance(about, dict) else {}
    grade_id = about.get("grade_id") if any(about.get(flag) for flag in ("grade", "solution", "locked", "task")) else None
    source = cell["source"]
    return {
        "cell_type": cell["cell_type"],
        "id": cell["id"] if isinstance(cell.get("id"), str) and CELL_ID.fullmatch(cell["id"]) else None,
        "about": about,
        "grade_id": None if grade_id is None else str(grade_id),
        "source": source if isinstance(source, str) else "".join(source),
    }


def _cell(cell_type, identity, metadata, source):
    cell = {"cell_type": cell_type, "id": identity, "metadata": metadata, "source": source}
    return cell | {"execution_count": None, "outputs": []} if cell_type == "code" else cell


def _trusted(about):
    return {key: about.get(key, False) for key in ("grade", "solution", "locked", "points")}


def _short(text):
    return str(text)[:40]
