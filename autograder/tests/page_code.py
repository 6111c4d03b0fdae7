"""Text and code of the book's pages, for the tests of what they say."""

import ast
import importlib
import re
from functools import cache, partial

import jupytext
import pytest
from conftest import ROOT


def text(page):
    """The whole page with single spaces."""
    return re.sub(r"\s+", " ", (ROOT / "chapters" / f"{page}.md").read_text(encoding="utf-8"))


@cache
def cells(page):
    """The sources of the page's code cells."""
    read = jupytext.read(ROOT / "chapters" / f"{page}.md", fmt="md:myst").cells
    return [cell.source for cell in read if cell.cell_type == "code"]


def cell(page, part):
    """The one cell that contains `part`."""
    found = [source for source in cells(page) if part in source]
    assert len(found) == 1, f"{len(found)} cells contain {part!r}"
    return found[0]


def execute(page, *parts, **names):
    """What is bound after the cells with these parts have run one after the other."""
    for part in parts:
        exec(compile(cell(page, part), f"{page}.md", "exec"), names)
    return names


def definitions(page, kinds=(ast.Import, ast.ImportFrom, ast.FunctionDef), **names):
    """What the page's imports and functions bind; nothing else of it runs."""
    for source in cells(page):
        kept = [node for node in ast.parse(source).body if isinstance(node, kinds)]
        kept = [node for node in kept if getattr(node, "module", "") != "warplab.figures"]
        exec(compile(ast.Module(kept, []), f"{page}.md", "exec"), names)
    return names


@cache
def printed(page):
    """What the page's cells printed when the book was built; skips where this text of it was not built."""
    cached = ROOT / "_build" / ".jupyter_cache"
    found = []
    if cached.is_dir():
        from jupyter_cache import get_cache

        cache_ = get_cache(cached)
        records = [one for one in cache_.list_cache_records() if one.uri.endswith(f"/{page}.md")]
        found = [cache_.get_cache_bundle(one.pk).nb.cells for one in records]
    for built in found:
        code = [cell for cell in built if cell.cell_type == "code"]
        if [cell.source for cell in code] == cells(page):
            outputs = [output for cell in code for output in cell.outputs]
            return "".join(output.text for output in outputs if output.output_type == "stream")
    pytest.skip(f"this {page}.md is not built: run make book")


def figures(name):
    """A function that imports the module of these figures when it is first called."""
    return cache(partial(importlib.import_module, f"warplab.figures.{name}"))
