"""Looks tasks up by name; imports the module of a problem set when one of its tasks is first needed."""

import difflib
import importlib
from pathlib import Path

from warplab.tasks.declaration import DECLARED


class UnknownName(KeyError):
    """No task or puzzle has this name; a notebook shows only the sentence, without a traceback."""

    def __init__(self, kind, name, known):
        near = difflib.get_close_matches(str(name), known, 1)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        super().__init__(f"no {kind} is called {name!r}{meant} Known {kind}s: {', '.join(known)}")

    def __str__(self):
        return self.args[0]

    def _render_traceback_(self):
        return [str(self)]


def get(name):
    """The task called `name`, such as "ps04/matmul_tiled". Raises UnknownName with those of its set."""
    mine = [] if name in DECLARED else names(str(name).partition("/")[0])
    if name not in DECLARED:
        raise UnknownName("task", name, mine or names())
    return DECLARED[name]


def names(problem_set=None):
    """Task names of one problem set ("ps04"), in the order of its file, [] for an unknown set; None: all."""
    folder = Path(__file__).parent
    for module in sorted(folder.glob("ps*.py")):
        if problem_set in (None, module.stem):
            importlib.import_module(f"warplab.tasks.{module.stem}")
    return [name for name in DECLARED if problem_set is None or name.startswith(f"{problem_set}/")]
