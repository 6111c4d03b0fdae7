"""From a solution notebook in py:percent to nbgrader's source notebook with all its metadata.

An author writes only a marker per cell; ids, points and nbgrader's metadata are derived here:

    # %% solution="matmul_tiled"                            between BEGIN and END SOLUTION the student writes
    # %% grade="ps04/matmul_tiled"                          a test cell, worth the task's points
    # %% grade="ps04/matmul_register_tiled" rubric="time"   a task's timed points, in a cell of their own
    # %% [markdown] manual="predict_explain" points=5       a written answer, graded by hand
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from autograder.layout import SOLUTIONS
from autograder.user_error import UserError, nearest
from warplab.tasks import registry
from warplab.tasks.declaration import Task

GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
MARKS = ("solution", "grade", "manual", "rubric", "points")  # a cell has at most one of the first three
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def source_notebook(path: Path) -> dict[str, Any]:
    """Read a py:percent file and return the source notebook as nbformat 4.5 JSON data (a dict).

    Raises UserError that names the file and the cell for an unknown task, a repeated id or an unbalanced
    solution region.
    """
    import jupytext

    try:
        parsed: Any = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    except (ValueError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: not a py:percent notebook: {problem}") from None
    used: set[str] = set()
    cells: list[dict[str, Any]] = []
    for cell in parsed.cells:
        try:
            cells.append(_cell(cell, used))
        except ValueError as problem:
            first = cell.source.strip().splitlines()[:1]
            where = f" (cell that begins {first[0][:60]!r})" if first else ""
            raise UserError(f"{path}: {problem}{where}") from None
    return {
        "cells": cells,
        "metadata": {"kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def solved_cells(root: str | Path, name: str) -> list[dict[str, Any]]:
    """The cells of a set in solutions/, each source joined to one string; [] where it is not here."""
    files = (Path(root) / SOLUTIONS).glob(f"{name}_*.py")
    cells = (cell for file in files for cell in source_notebook(file)["cells"])
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def without_markers(source: str) -> str:
    """The text as a student would hand it in: no BEGIN and END lines."""
    return "\n".join(line for line in source.split("\n") if BEGIN not in line and END not in line)


def stable_json(document: Mapping[str, Any]) -> bytes:
    """A notebook's bytes, the same on every run: sorted keys, indent 1, a newline at the end."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def get_task(name: str) -> Task:
    """Look a task up in the registry. Raises ValueError with the nearest names for an unknown one."""
    try:
        return registry.get(name)
    except KeyError:
        raise ValueError(f'no task is called "{name}"{nearest(name, registry.names())}') from None


def _cell(cell: Any, used: set[str]) -> dict[str, Any]:
    """One cell parsed by jupytext, as JSON with nbgrader's metadata. used: ids so far; its own is added.

    Raises ValueError for markers that do not fit the cell or each other.
    """
    marks = {key: cell.metadata[key] for key in MARKS if key in cell.metadata}
    metadata = {key: value for key, value in cell.metadata.items() if key in ("tags",)}
    kinds = [key for key in MARKS[:3] if key in marks]
    if len(kinds) > 1:
        raise ValueError(f"a cell carries one marker, this one has {' and '.join(kinds)}")
    if cell.source.count(BEGIN) != cell.source.count(END):
        raise ValueError(f"{cell.source.count(BEGIN)} x {BEGIN!r} but {cell.source.count(END)} x {END!r}")
    if BEGIN in cell.source and kinds not in (["solution"], ["manual"]):
        raise ValueError('a solution region stands in a cell without solution="..."')
    if "solution" in marks:
        if BEGIN not in cell.source:
            raise ValueError(f"solution={marks['solution']!r} has no {BEGIN!r}")
        metadata["nbgrader"] = _about(marks["solution"], solution=True)
    elif "grade" in marks:
        metadata.update(_grade_metadata(marks))
    elif "manual" in marks:
        if cell.cell_type != "markdown":
            raise ValueError(f"manual={marks['manual']!r} belongs on a [markdown] cell")
        if not isinstance(marks.get("points"), int | float):
            raise ValueError(f"manual={marks['manual']!r} needs points=...")
        metadata["nbgrader"] = _about(marks["manual"], grade=True, solution=True, points=marks["points"])
    identity = metadata["nbgrader"]["grade_id"] if "nbgrader" in metadata else _content_id(cell, used)
    if identity in used:
        raise ValueError(f'the id "{identity}" is used twice')
    used.add(identity)
    result = {
        "cell_type": cell.cell_type,
        "id": identity,
        "metadata": metadata,
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.cell_type == "code":
        result.update(execution_count=None, outputs=[])
    return result


def _grade_metadata(marks: Mapping[str, Any]) -> dict[str, Any]:
    name, rubric = marks["grade"], marks.get("rubric")
    if rubric not in (None, "time"):
        raise ValueError(f'rubric={rubric!r} is not known; leave it out, or write rubric="time"')
    points = get_task(name).points_for(rubric)
    if not points:
        raise ValueError(f'task "{name}" has no {"timed " if rubric else ""}points for this cell')
    points = int(points) if points.is_integer() else points  # so that JSON has 5, not 5.0
    grade_id = f"{name.split('/')[-1]}-{rubric or 'test'}"
    ours = {"task": name} if rubric is None else {"task": name, "rubric": rubric}
    return {"nbgrader": _about(grade_id, grade=True, locked=True, points=points), "warplab": ours}


def _about(grade_id: object, **marks: Any) -> dict[str, Any]:
    """nbgrader's metadata of a cell. marks: those of grade, solution and locked that are True; points."""
    if not isinstance(grade_id, str) or not GRADE_ID.fullmatch(grade_id):
        raise ValueError(f"{grade_id!r} is no id: use up to 64 letters, digits, - and _")
    unmarked = dict.fromkeys(("grade", "solution", "locked", "task"), False)
    return unmarked | {"grade_id": grade_id, "schema_version": 3} | marks


def _content_id(cell: Any, used: Collection[str]) -> str:
    """An id made from the cell's text, so that editing one cell does not change the ids of others."""
    digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
    identity, repeat = f"c-{digest}", 1
    while identity in used:
        repeat += 1
        identity = f"c-{digest}-{repeat}"
    return identity
