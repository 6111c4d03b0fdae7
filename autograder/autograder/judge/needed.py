"""Which cells a grade depends on.

The student's own cells all run; a given cell that is unchanged runs only if its names are used. Notebooks are
full of cells that draw and count for the reader. Running those for a class of two hundred buys nothing.
"""

import symtable
from collections.abc import Collection, Sequence


def needed_cells(cells: Sequence[tuple[str, str]], given: Collection[str]) -> set[str]:
    """The ids of the code cells to run, as a set.

    cells: [(id, source)] in notebook order. given: texts of the released cells that the student was not meant
    to change.
    """
    kept: set[str] = set()
    wanted: set[str] = set()
    for identity, source in reversed(cells):
        bound, used = names_of(source)
        if source.strip() in given and bound is not None and not bound & wanted:
            continue
        kept.add(identity)
        wanted |= used
    return kept


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
