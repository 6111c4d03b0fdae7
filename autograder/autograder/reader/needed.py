"""Finds given cells that no grade depends on, and CUDA C++ inside Python strings.

All cells that a student wrote run. An unchanged given cell runs only if a later cell uses its names:
notebooks have many cells that only draw and count for their reader, and running those for a whole class would
waste time.
"""

import ast
import symtable
from collections.abc import Iterator, Sequence


def idle_cells(cells: Sequence[tuple[str, str, bool]]) -> list[str]:
    """The ids of the given cells whose names nothing uses.

    cells: [(id, source, whether it is given and unchanged)] of the code cells, in notebook order.
    """
    idle: list[str] = []
    wanted: set[str] = set()
    for identity, source, given in reversed(cells):
        bound, used = names_of(source)
        if given and bound is not None and not bound & wanted:
            idle.append(identity)
        else:
            wanted |= used
    return idle


def names_of(source: str) -> tuple[set[str] | None, set[str]]:
    """(names that a cell binds at top level, global names that it refers to).

    The first is None where the names cannot be known, as with `import *` or IPython magic.
    """
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deep to compile
        return None, set()
    symbols = [(scope is table, symbol) for scope in _scopes(table) for symbol in scope.get_symbols()]
    used = {one.get_name() for top, one in symbols if one.is_referenced() and (top or one.is_global())}
    if "import *" in source or "globals(" in source or "exec(" in source:
        return None, used
    bound = {
        one.get_name()
        for top, one in symbols
        if top
        and (one.is_assigned() or one.is_imported() or one.is_namespace())
        or one.is_declared_global()
        and one.is_assigned()
    }
    return bound, used


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield a scope and all scopes inside it."""
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def cuda_cpp_in(source: str) -> list[str]:
    """The strings in a Python cell that contain a CUDA C++ kernel; of a `%%cuda` cell, its whole source."""
    if "__global__" not in source:
        return []
    if source.lstrip().startswith("%%cuda"):
        return [source]
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    strings = (node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str)
    return [text for text in strings if "__global__" in text]
