"""Where things are in a course: the root folder and the released problem sets.

Types and points of cells come from the released notebook alone, never from a submitted one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import yaml

from autograder.user_error import UserError, nearest

SOLUTIONS = "solutions"
SOURCE = "_build/source"
RELEASE = "exercises"
SUBMITTED = "submitted"
GRADES = "grades"
MOST_LINES, MOST_SHOWN = 2_000, 60_000  # lines and characters of a cell that a page shows


class NotebookCell(TypedDict):
    """A cell as nbformat 4.5 stores it, its source joined to one string. metadata: free-form JSON."""

    cell_type: str
    id: str
    metadata: dict[str, Any]
    source: str
    execution_count: NotRequired[None]
    outputs: NotRequired[list[dict[str, Any]]]


class NotebookDocument(TypedDict):
    """A notebook as nbformat 4.5 stores it."""

    cells: list[NotebookCell]
    metadata: dict[str, Any]
    nbformat: int
    nbformat_minor: int


@dataclass(frozen=True)
class CellSpec:
    """One cell with a grade id as it was released: the trusted source of its type, points and metadata.

    kind: "solution" (the student writes it), "grade" (a test cell, judged), "manual" (a written answer,
    graded by hand).
    """

    grade_id: str
    kind: str
    cell_type: str
    source: str
    metadata: dict[str, Any]
    cell_id: str
    points: float = 0.0
    task: str | None = None
    rubric: str | None = None


@dataclass(frozen=True)
class Assignment:
    """A released problem set. `cells` maps grade ids to CellSpec in notebook order."""

    name: str
    notebook: str
    path: Path
    cells: dict[str, CellSpec]
    document: NotebookDocument = field(repr=False)

    @property
    def filename(self) -> str:
        return f"{self.notebook}.ipynb"

    @property
    def max_score(self) -> float:
        return sum(cell.points for cell in self.cells.values())

    def graded(self) -> list[CellSpec]:
        """The cells that carry points, in notebook order."""
        return [cell for cell in self.cells.values() if cell.kind in ("grade", "manual")]

    def given(self) -> set[str]:
        """Texts of the released code cells that carry no grade id: imports, helpers, demonstrations."""
        return {
            cell["source"].strip()
            for cell in self.document["cells"]
            if cell["cell_type"] == "code" and "nbgrader" not in cell["metadata"]
        }

    def tasks(self) -> list[str]:
        """Task names in notebook order, each once."""
        return list(dict.fromkeys(cell.task for cell in self.cells.values() if cell.task))


def beside_solutions(root: Path, name: str) -> dict[str, Any]:
    """What a YAML file of solutions/ says by name; {} where it is not here. UserError where it is damaged."""
    file = root / SOLUTIONS / name
    try:
        return dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {}) if file.exists() else {}
    except (ValueError, TypeError, yaml.YAMLError) as problem:
        raise UserError(f"cannot read {file} as `name: ...`: {' '.join(str(problem).split())}") from None


def find_root(start: str | Path | None = None) -> Path:
    """The course folder: the nearest one at or above `start` (default: here) that holds nbgrader_config.py.

    A student has no such file: there the nearest folder that holds exercises/ counts.
    """
    start = Path(start or Path.cwd()).resolve()
    for marker in ("nbgrader_config.py", RELEASE):
        for folder in (start, *start.parents):
            if (folder / marker).exists():
                return folder
    package = Path(__file__).resolve().parents[2]
    if (package / "nbgrader_config.py").exists():
        return package
    raise UserError(
        f"no course here: neither {start} nor a folder above it holds nbgrader_config.py; "
        "change to the course folder"
    )


def assignment_names(root: str | Path) -> list[str]:
    """Names of the released problem sets, sorted."""
    return sorted(folder.name for folder in (Path(root) / RELEASE).glob("*") if list(folder.glob("*.ipynb")))


def load_assignment(root: str | Path, name: str) -> Assignment:
    """Read a released problem set. Raises UserError for an unknown name or a folder that is not released."""
    names = assignment_names(root)
    if name not in names:
        if not names:
            raise UserError(f"nothing is released in {Path(root) / RELEASE}; run `autograder release` first")
        raise UserError(f'unknown assignment "{name}"{nearest(name, names)}')
    notebooks = sorted((Path(root) / RELEASE / name).glob("*.ipynb"))
    if len(notebooks) > 1:
        raise UserError(
            f"{notebooks[0].parent} holds {len(notebooks)} notebooks, expected one; remove the stray one"
        )
    document = json.loads(notebooks[0].read_text(encoding="utf-8"))
    return assignment_of(document, name, notebooks[0].stem, notebooks[0])


def assignment_of_file(root: str | Path, file: Path) -> Assignment:
    """The problem set that a notebook's file is named after: ps04 of ps04_matmul.ipynb, and of ps04.ipynb.

    Raises UserError where there is none.
    """
    name = file.name.partition("_")[0].removesuffix(".ipynb")
    if assignment_names(root) and name not in assignment_names(root):
        raise UserError(
            f'unknown assignment "{name}"{nearest(name, assignment_names(root))}; '
            f"{file} has to keep the name with which it was released, such as ps04_matmul.ipynb"
        )
    return load_assignment(root, name)


def assignment_of(document: NotebookDocument, name: str, notebook: str, path: Path = Path()) -> Assignment:
    """Build an Assignment from a released notebook; joins the cells' sources in `document` in place.

    path: its file, if there is one.
    """
    cells: dict[str, CellSpec] = {}
    for cell in document["cells"]:
        cell["source"] = _joined(cell["source"])
        about = cell["metadata"].get("nbgrader")
        if not about or "grade_id" not in about:
            continue
        ours = cell["metadata"].get("warplab", {})
        kind = "manual" if about["grade"] and about["solution"] else "grade" if about["grade"] else "solution"
        cells[about["grade_id"]] = CellSpec(
            grade_id=about["grade_id"],
            kind=kind,
            cell_type=cell["cell_type"],
            source=cell["source"],
            metadata=cell["metadata"],
            cell_id=cell["id"],
            points=float(about.get("points", 0)),
            task=ours.get("task"),
            rubric=ours.get("rubric"),
        )
    return Assignment(name, notebook, path, cells, document)


def _joined(source: str | Sequence[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def first_lines(text: str) -> tuple[list[str], str]:
    """(the lines of a cell that a page shows, "... and 7 more lines" about the rest or "")."""
    lines = text[:MOST_SHOWN].split("\n")[:MOST_LINES]
    more = text.count("\n") + 1 - len(lines)
    cut = len(text) > MOST_SHOWN and more <= 0
    return lines, f"... and {more:,} more lines" if more > 0 else "... and more of this line" if cut else ""


def without_magics(source: str) -> str:
    """The cell with lines of IPython's own syntax (%magic, !shell, ?help) emptied; line numbers stay."""
    return "\n".join("" if _is_magic(line) else line for line in source.split("\n"))


def _is_magic(line: str) -> bool:
    text = line.strip()
    return text.startswith(("!", "?")) or text.startswith("%") and text.lstrip("%")[:1].isalpha()
