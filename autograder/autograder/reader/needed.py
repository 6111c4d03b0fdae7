"""Which given cells no grade depends on, and the C++ that stands inside Python.

The student's own cells all run; a given cell that is unchanged runs only if its names are used. Notebooks are
full of cells that draw and count for the reader. Running those for a class of two hundred buys nothing.
"""

import ast
import symtable
from collections.abc import Sequence


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
    """(names a cell binds at top level, global names it refers to).

    Binds None where that cannot be known: `import *`, IPython magic.
    """
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deep to compile
        return None, set()
    if "import *" in source or "globals(" in source or "exec(" in source:
        return None, _used(table)
    symbols = table.get_symbols()
    bound = {
        symbol.get_name()
        for symbol in symbols
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    return bound | _declared_global(table), _used(table)


def cuda_cpp_in(source: str) -> list[str]:
    """The strings in a cell of Python that hold a kernel in CUDA C++; a cell of ``%%cuda`` is one."""
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


def _used(table: symtable.SymbolTable) -> set[str]:
    """Global names read in this scope or any scope inside it."""
    if table.get_type() == "module":
        names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    else:
        names = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_global() and symbol.is_referenced()
        }
    return names.union(*(_used(child) for child in table.get_children()))


def _declared_global(table: symtable.SymbolTable) -> set[str]:
    """Names that functions bind in the module through `global`."""
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_declared_global() and symbol.is_assigned()
    }
    return names.union(*(_declared_global(child) for child in table.get_children()))
