"""Declares experiments: generators of Workloads with a question, the chapter that uses it and a hash of their
code.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

from warplab.evidence.clocks import Workload

ROOMS = (
    "warplab.evidence.experiments.",
    "warplab.models.networks",
)  # modules whose code belongs to an experiment


@dataclass(frozen=True)
class Experiment:
    """An experiment. ``cases(where)`` yields Workloads for "cuda" or "cpu"; ``cpu``: whether there are any
    for "cpu". ``x``: the label of the horizontal axis.
    """

    name: str
    question: str
    chapter: str
    x: str
    cpu: bool
    cases: Callable[[str], Iterator[Workload]]

    @property
    def code(self) -> str:
        """A hash of the experiment's code (``source_of``), which is kept in its records."""
        return hashlib.sha256("\n".join(source_of(self.cases)).encode()).hexdigest()[:16]


def source_of(function) -> list[str]:
    """The source of a function and of everything in ROOMS that it uses, directly or indirectly: kernels,
    helpers, models, constants; sorted by name.

    Comments and blank lines are left out, docstrings are not; nor does the code of the timing count.
    """
    found: dict[str, str] = {}
    _collect(function.__name__, function, found)
    return [found[name] for name in sorted(found)]


def _collect(name: str, value, found: dict[str, str]) -> None:
    value = getattr(value, "py_func", value)
    if isinstance(value, tuple | list | dict):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            _collect(f"{name}[{key!r}]", part, found)
    elif isinstance(value, int | float | str):
        found[name] = f"{name} = {value!r}"
    elif hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        found[name] = f"{name} = {value.item()!r}"
    elif inspect.isfunction(value) or inspect.isclass(value):
        lines = inspect.getsource(value).splitlines()
        found[name] = "\n".join(s.rstrip() for s in lines if s.strip() and not s.lstrip().startswith("#"))
        functions = (
            [value]
            if inspect.isfunction(value)
            else [f for f in vars(value).values() if inspect.isfunction(f)]
        )
        for function in map(inspect.unwrap, functions):
            for called in _names(function.__code__):
                part = function.__globals__.get(called)
                own = getattr(part, "__module__", ROOMS[0])  # constants have none
                if (
                    part is not None
                    and called not in found
                    and own.startswith(ROOMS)
                    and own != Workload.__module__
                ):
                    _collect(called, part, found)


def _names(code: CodeType) -> set[str]:
    """All global names that a function, and the functions inside it, look up."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


DECLARED: dict[str, Experiment] = {}


def experiment(*, question: str, chapter: str, x: str, cpu: bool = False):
    """Decorator that registers a generator function as an Experiment, under its own name."""

    def register(cases):
        DECLARED[cases.__name__] = Experiment(cases.__name__, question, chapter, x, cpu, cases)
        return cases

    return register
