"""The cells of a solution notebook that a task's reference solution needs, and what they define."""

import re
from functools import cache
from pathlib import Path
from typing import Any

COMMENT = re.compile(
    r"(^\s*|\s{2,})#+( .*)?$|(?<=\S)\s{2,}// .*$|^\s*// .*$"
)  # Python's comments, and C++'s on a line of their own or behind a statement

GIVEN = re.compile(r'def |[A-Z]+ = r"""')


def code_cells(path: Path) -> list[tuple[str, str]]:
    """[(marker, source)] of the code cells; sources are padded with blank lines to keep line numbers."""
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
    """Sources of the cells that a task's solution needs, its own last. short: the task without its set.

    They are all cells before the set's first solution, and then solutions and given functions (Python or CUDA
    C++ in a string). Raises KeyError if no cell is marked with solution="short".
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
    """The namespace that a notebook has before the cell of a task's solution.

    It is cached: copy it before running anything in it.
    """
    return run_cells(cells_for(notebook, short)[:-1], notebook)


def bare(text: str) -> list[str]:
    """The lines of a source without comments and blank lines."""
    lines = (COMMENT.sub("", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line]
