"""Which cells a grade depends on: the student's own cells all run; a given cell that is unchanged runs only if its names are used.

Notebooks are full of cells that draw and count for the reader. Running those for a class of two hundred buys nothing.
"""

import symtable

ALL = None


def needed_cells(cells, given):
    """The ids of the code cells to run, as a set.

    cells: [(id, source)] in notebook order. given: texts of the released cells that the student was not meant to change.
    """
    kept, wanted = set(), set()
    for identity, source in reversed(cells):
        bound, used = names_of(source)
        if source.strip() in given and bound is not ALL and not bound & wanted:
            continue
        kept.add(identity)
        wanted |= used
    return kept


def names_of(source):
    """(names a cell binds at top level, global names it refers to); binds ALL where that cannot be known: `import *`, IPython magic."""
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: an expression too deep for the compiler
        return ALL, set()
    if "import *" in source or "globals(" in source or "exec(" in source:
        return ALL, _used(table)
    symbols = table.get_symbols()
    bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()}
    return bound | _declared_global(table), _used(table)


def _used(table):
    """Global names read in this scope or any scope inside it."""
    if table.get_type() == "module":
        names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    else:
        names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return names.union(*(_used(child) for child in table.get_children()))


def _declared_global(table):
    """Names that functions bind in the module through `global`."""
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_declared_global() and symbol.is_assigned()}
    return names.union(*(_declared_global(child) for child in table.get_children()))
