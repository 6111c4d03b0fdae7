"""The cells of a solution notebook that a task's reference is made of, and what they define."""

import re
from functools import cache
from pathlib import Path
from typing import Any

COMMENT = re.compile(
    r"(^\s*|\s{2,})#+( .*)?$|(?<=\S)\s{2,}// .*$|^\s*// .*$"
)  # of Python, and of C++ where it stands alone or behind a statement

GIVEN = re.compile(r'def |[A-Z]+ = r"""')


def code_cells(path: Path) -> list[tuple[str, str]]:
    """(marker, blank-padded source) of each code cell: padding keeps the line numbers of the file."""
    cells: list[tuple[str, str]] = []
    marker, lines, start = None, [], 0
    for number, line in enumerate([*path.read_text().splitlines(), "# %%"]):
        if line.startswith("# %%"):
            if marker is not None and "[markdown]" not in marker:
                cells.append((marker, "\n" * start + "\n".join(lines)))
            marker, lines, start = line, [], number + 1
        else:
            lines.append(line)
    return cells


def cells_for(notebook: Path, short: str) -> list[str]:
    """Sources of the cells that a task's solution needs, its own last.

    Those are the cells before the set's first solution, other solutions, and given functions, of Python or in
    a text of C++. KeyError if no cell is marked with solution="short".
    """
    needed: list[str] = []
    begun = False
    for marker, source in code_cells(notebook):
        begun = begun or "solution=" in marker
        if not begun or "solution=" in marker or GIVEN.match(source.lstrip()):
            needed.append(source)
        if f'solution="{short}"' in marker:
            return needed
    raise KeyError(f"{notebook.name} has no cell with solution={short!r}")


def run_cells(sources: list[str], path: Path) -> dict[str, Any]:
    """The namespace after these cells of a solution notebook."""
    namespace: dict[str, Any] = {"__name__": "solutions"}
    for source in sources:
        exec(compile(source, str(path), "exec"), namespace)
    return namespace


@cache
def given_to(notebook: Path, short: str) -> dict[str, Any]:
    """What a notebook has defined before the cell of a task's solution.

    Shared: copy it before anything runs in it.
    """
    return run_cells(cells_for(notebook, short)[:-1], notebook)


def bare(text: str) -> list[str]:
    """The lines of a text without comments and blank lines."""
    lines = (COMMENT.sub("", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line]
