"""The text and the code of a chapter, taken from its page."""

import ast
import builtins
import re
from functools import cache

import jupytext
from conftest import ROOT

CHEAP = {"cuda.jit", "f32", "int", "np.empty", "np.float32", "np.linspace", "specs.get"}
CHEAP |= {"vram.kv_cache_bytes", "warplab.specs.get"}


@cache
def text_of(page):
    """The page on one line, in which a sentence can be looked up."""
    return " ".join((ROOT / "chapters" / f"{page}.md").read_text(encoding="utf-8").split())


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


def defined(page, **names):
    """``names``, and what the page's cells import and define; nothing is timed, counted, printed or drawn.

    Of constants those that follow from numbers, from one another and from the calls in CHEAP.
    """
    for source in code_of(page):
        for node in ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.M)).body:
            if _only_defines(node, names):
                exec(compile(ast.Module([node], []), f"{page}.md", "exec"), names)
    return names


def _only_defines(node, known):
    inner = list(ast.walk(node))
    if isinstance(node, ast.Assign):
        named = [each for each in inner if isinstance(each, ast.Name)]
        own = {each.id for each in named if isinstance(each.ctx, ast.Store)}
        calls = {ast.unparse(each.func) for each in inner if isinstance(each, ast.Call)}
        return calls <= CHEAP and {each.id for each in named} - own <= {*known, *dir(builtins)}
    if isinstance(node, ast.ImportFrom) and (ROOT / "chapters" / str(node.module)).is_dir():
        return False  # a program beside the page, which only the page's own folder finds
    marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", [])]
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) and (
        "triton.jit" not in marks
    )
