"""From the bytes of a notebook to a flat list of its cells, or the first reason why that fails.

A submission is untrusted and may take any time and memory to parse, so the judge has a limited process do it
(autograder.judge.reading). Students check their own files in their own process.
"""

import functools
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypedDict

from msgspec import Meta

MAX_CELLS = 1000
MAX_SOURCE = 200_000
MAX_TEXT = 1_000_000  # characters of all cells together: sixty times the longest problem set
MAX_ID = 100
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
Mark = Annotated[str, Meta(pattern=r"\A(grade|solution|locked|points)\Z")]


class HandedInCell(TypedDict):
    """The parts of a submitted cell that are used. about: its nbgrader metadata, which is not trusted.

    The judge validates cells from a reader process or a worker against these annotations.
    """

    cell_type: Annotated[str, Meta(pattern=r"\A(code|markdown|raw)\Z")]
    id: Annotated[str, Meta(pattern=rf"\A{CELL_ID.pattern}\Z")] | None
    about: Annotated[dict[Mark, bool | int | float | None], Meta(min_length=4)]
    grade_id: Annotated[str, Meta(max_length=MAX_ID)] | None
    source: Annotated[str, Meta(max_length=MAX_SOURCE)]


class NoNotebook(ValueError):
    """The bytes are not a notebook that can be graded. code: a fixed word. The text is a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def cells_of(data: bytes) -> list[HandedInCell]:
    """The cells of a notebook of format 4, checked against Jupyter's schema. Raises NoNotebook."""
    document = parse(data)
    _check_schema(document)
    cells = [reduced(cell) for cell in document["cells"]]
    for size in (len(cell["source"]) for cell in cells):
        if size > MAX_SOURCE:
            _refuse("long-cell", f"one cell has {size:,} characters, the limit is {MAX_SOURCE:,}")
    size = sum(len(cell["source"]) for cell in cells)
    if size > MAX_TEXT:
        _refuse("long-text", f"the cells have {size:,} characters, the limit is {MAX_TEXT:,}")
    return cells


def parse(data: bytes) -> dict[str, Any]:
    """Bytes to a document that has a list of cells and says that it is of format 4. Raises NoNotebook."""
    if not data.strip():
        _refuse("empty", "the file is empty: save the notebook and submit it again")
    try:
        document = json.loads(data.decode("utf-8"))
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        _refuse("not-text", "the file is not UTF-8 text, so it is not a notebook")
    except UnicodeEncodeError:
        _refuse("bad-text", "the file holds half of a character pair, which no notebook can hold")
    except RecursionError:
        _refuse("too-deep", "the JSON is nested too deep")
    except ValueError as problem:
        _refuse("not-json", f"the file is not JSON: {shown(str(problem), 120)}")
    if not isinstance(document, dict) or not isinstance(
        document.get("cells", document.get("worksheets")), list
    ):
        _refuse("not-notebook", "the JSON is not a Jupyter notebook")
    if document.get("nbformat") != 4:
        told = shown(str(document.get("nbformat")), 20)
        _refuse(
            "wrong-format",
            f"the notebook has format {told}, expected 4: open it in Jupyter and save it again",
        )
    if "cells" not in document:
        _refuse("not-notebook", "the JSON is not a Jupyter notebook: it has no cells")
    if len(document["cells"]) > MAX_CELLS:
        _refuse("too-many-cells", f"{len(document['cells'])} cells, the limit is {MAX_CELLS}")
    return document


def shown(text: str, most: int) -> str:
    """The first `most` characters of an untrusted text, with unprintable ones replaced by "\ufffd"."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text[:most])


@functools.cache
def schema() -> Any:
    """A validator of Jupyter's JSON schema of nbformat 4.4, the last one that does not require cell ids.

    nbformat.validate itself would repair the document, and fails with its own errors where it cannot. It is
    imported here because a machine that only runs the timed tests may have no nbformat.
    """
    from nbformat.validator import get_validator

    return get_validator(4, 4, relax_add_props=True)


def _check_schema(document: Mapping[str, Any]) -> None:
    minor = document.get("nbformat_minor")
    if type(minor) is not int or not 0 <= minor <= 5:
        _refuse("wrong-format", f"nbformat_minor is {shown(str(minor), 20)}, expected 0 to 5")
    try:
        problem = next(iter(schema().iter_errors({**document, "nbformat_minor": 4})), None)
    except RecursionError:
        _refuse("too-deep", "the JSON is nested too deep")
    if problem is not None:
        text = shown(" ".join(problem.message[:1000].split()), 160)
        _refuse("bad-schema", f"the notebook breaks Jupyter's schema: {text}")


def reduced(cell: Mapping[str, Any]) -> HandedInCell:
    """A cell of a notebook file reduced to a HandedInCell; its grade id counts only if a mark is set."""
    about = cell["metadata"].get("nbgrader")
    if not isinstance(about, dict):
        about = {}
    marked = any(about.get(flag) for flag in ("grade", "solution", "locked", "task"))
    grade_id = about.get("grade_id") if marked else None
    source = cell["source"]
    return {
        "cell_type": cell["cell_type"],
        "id": cell["id"] if isinstance(cell.get("id"), str) and CELL_ID.fullmatch(cell["id"]) else None,
        "about": {key: _number(about.get(key, False)) for key in ("grade", "solution", "locked", "points")},
        "grade_id": None if grade_id is None else str(grade_id)[:MAX_ID],
        "source": source if isinstance(source, str) else "".join(source),
    }


def _number(value: object) -> bool | int | float | None:
    """The value of one of nbgrader's marks; None for other types and for integers beyond 53 bits."""
    if isinstance(value, bool | float) or isinstance(value, int) and abs(value) < 1 << 53:
        return value
    return None


def _refuse(code: str, text: str) -> NoReturn:
    raise NoNotebook(code, text) from None
