"""Every task by its name. The module of a problem set is imported when one of its tasks is asked for."""

import importlib
from pathlib import Path

from warplab.tasks.declaration import DECLARED


def get(name):
    """The task called `name`, for example "ps04/matmul_tiled". Raises KeyError with the names that exist."""
    if name not in DECLARED:
        names(name.split("/")[0])
    if name not in DECLARED:
        raise KeyError(f"no task is called {name!r}; known tasks: {', '.join(names())}")
    return DECLARED[name]


def names(problem_set=None):
    """Task names of one problem set ("ps04"), in the order of its file; None: of all sets.

    An unknown set has none.
    """
    folder = Path(__file__).parent
    for module in sorted(folder.glob("ps*.py")):
        if problem_set in (None, module.stem):
            importlib.import_module(f"warplab.tasks.{module.stem}")
    return [name for name in DECLARED if problem_set is None or name.startswith(f"{problem_set}/")]
