"""Read one submitted notebook, find every defect, and restore what the student must not change."""

import json
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.layout import Assignment, NotebookDocument
from autograder.validate.restore import Defect, restore

MAX_BYTES = 20 * 2**20
MAX_CELLS = 1000
MAX_SOURCE = 200_000


class Malformed(Exception):
    """The notebook cannot be graded. `defects` lists why; the submission is set aside, which is not a 0."""

    def __init__(self, defects: Iterable[Defect]) -> None:
        self.defects = tuple(defects)
        super().__init__("; ".join(str(defect) for defect in self.defects if defect.fatal))


@dataclass(frozen=True)
class Checked:
    """notebook: restored, without outputs. notes: the defects that were put right.

    data: the bytes that were read.
    """

    notebook: NotebookDocument
    notes: tuple[Defect, ...]
    data: bytes


def check_file(path: str | Path, assignment: Assignment, inside: Path | None = None) -> Checked:
    """Check one submitted file against a released Assignment.

    Returns Checked; raises Malformed with all fatal defects.
    inside: the submission's own folder, in which the file must really lie, whatever links say (default: not
    checked).
    """
    data = read_bytes(Path(path), inside)
    document = parse(data)
    notebook, defects = restore(document, assignment)
    if any(defect.fatal for defect in defects):
        raise Malformed(defects)
    return Checked(notebook, tuple(defects), data)


def read_bytes(path: Path, inside: Path | None = None) -> bytes:
    """The bytes of a regular file of at most MAX_BYTES that lies in the folder `inside`.

    That folder is no link itself.
    """
    _require("not-found", path.exists() or path.is_symlink(), f"there is no file {path.name}")
    try:
        state = path.stat()
        if inside is not None:
            own = inside.parent.resolve() / inside.name
            _require(
                "link-outside",
                path.resolve().is_relative_to(own),
                f"{path.name} is a link to a place outside the submission",
            )
        _require("not-a-file", stat.S_ISREG(state.st_mode), f"{path.name} is not a regular file")
        _require(
            "too-large",
            state.st_size <= MAX_BYTES,
            f"the file has {state.st_size / 2**20:.1f} MiB, the limit is {MAX_BYTES // 2**20}: "
            "clear all outputs and save again",
        )
        return path.read_bytes()
    except OSError as problem:
        raise Malformed([Defect("unreadable", f"{path.name} cannot be read: {problem.strerror}")]) from None


def parse(data: bytes) -> dict[str, Any]:
    """Bytes to a notebook of format 4, checked against Jupyter's schema."""
    _require("empty", bool(data.strip()), "the file is empty: save the notebook and submit it again")
    try:
        document = json.loads(data.decode("utf-8"))
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise Malformed([Defect("not-text", "the file is not UTF-8 text, so it is not a notebook")]) from None
    except UnicodeEncodeError:
        raise Malformed(
            [Defect("bad-text", "the file holds half of a character pair, which no notebook can hold")]
        ) from None
    except RecursionError:
        raise Malformed([Defect("too-deep", "the JSON is nested too deep")]) from None
    except ValueError as problem:
        raise Malformed([Defect("not-json", f"the file is not JSON: {str(problem)[:120]}")]) from None
    _require(
        "not-notebook",
        isinstance(document, dict) and isinstance(document.get("cells", document.get("worksheets")), list),
        "the JSON is not a Jupyter notebook",
    )
    _require(
        "wrong-format",
        document.get("nbformat") == 4,
        f"the notebook has format {str(document.get('nbformat'))[:20]}, expected 4: "
        "open it in Jupyter and save it again",
    )
    _require(
        "too-many-cells",
        len(document["cells"]) <= MAX_CELLS,
        f"{len(document['cells'])} cells, the limit is {MAX_CELLS}",
    )
    _check_schema(document)
    return document


def _check_schema(document: dict[str, Any]) -> None:
    """Jupyter's JSON schema of nbformat 4.4: the last one without cell ids, which we do not rely on.

    nbformat.validate itself would repair the document as it goes, and falls over on what it cannot repair.
    """
    from nbformat.validator import get_validator

    minor = document.get("nbformat_minor")
    _require(
        "wrong-format",
        type(minor) is int and 0 <= minor <= 5,
        f"nbformat_minor is {str(minor)[:20]}, expected 0 to 5",
    )
    plain = document | {"nbformat_minor": 4}
    try:
        validator: Any = get_validator(4, 4, relax_add_props=True)
        problem = next(iter(validator.iter_errors(plain)), None)
    except RecursionError:
        raise Malformed([Defect("too-deep", "the JSON is nested too deep")]) from None
    if problem is not None:
        text = " ".join(problem.message.split())[:160]
        raise Malformed([Defect("bad-schema", f"the notebook breaks Jupyter's schema: {text}")])
    for cell in document["cells"]:
        size = sum(map(len, cell["source"]))
        _require(
            "long-cell", size <= MAX_SOURCE, f"one cell has {size:,} characters, the limit is {MAX_SOURCE:,}"
        )


def _require(code: str, condition: bool, text: str) -> None:
    if not condition:
        raise Malformed([Defect(code, text)])
