"""The code of a chapter, taken from its page."""

from functools import cache

import jupytext
from conftest import ROOT


@cache
def code_of(page):
    """The sources of the page's code cells, in their order."""
    cells = jupytext.read(ROOT / "chapters" / f"{page}.md", fmt="md:myst").cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def cell_with(page, text):
    """The source of the one code cell of the page that contains ``text``."""
    found = [source for source in code_of(page) if text in source]
    assert len(found) == 1, f"{len(found)} cells of {page} contain {text!r}"
    return found[0]


def run_cells(page, /, *texts, **names):
    """``names``, and those bound after the cells with these texts have run one after the other."""
    for text in texts:
        exec(compile(cell_with(page, text), f"{page}.md", "exec"), names)
    return names
