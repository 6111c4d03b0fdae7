"""The list of experiments: each a small generator of Cases with a question, the chapter that uses it and its own code's hash."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .timing import Case


@dataclass(frozen=True)
class Experiment:
    """``cases(where)`` yields Cases for "cuda" or "cpu"; ``cpu``: whether there are any for "cpu". ``x``: the horizontal axis."""

    name: str
    question: str
    chapter: str
    x: str
    cpu: bool
    cases: Callable[[str], Iterator[Case]]
    uses: tuple = ()

    @property
    def code(self) -> str:
        """Hash of the experiment's own source and that of the kernels it names; comments and blank lines do not count."""
        digest = hashlib.sha256()
        for part in (self.cases, *self.uses):
            lines = inspect.getsource(getattr(part, "py_func", part)).splitlines()
            digest.update("\n".join(s.rstrip() for s in lines if s.strip() and not s.lstrip().startswith("#")).encode())
        return digest.hexdigest()[:16]


_FOUND: dict[str, Experiment] = {}


def experiment(*, question: str, chapter: str, x: str, cpu: bool = False, uses: tuple = ()):
    """Register a generator function under its own name. ``uses``: the kernels whose code is part of the experiment."""

    def register(cases):
        _FOUND[cases.__name__] = Experiment(cases.__name__, question, chapter, x, cpu, cases, uses)
        return cases

    return register


@functools.cache
def experiments() -> dict[str, Experiment]:
    """All of them by name, what the book misses most first."""
    from . import fusion, matmul, memory, overhead, patterns  # noqa: F401  (importing registers)

    order = ["launch_overhead", "copy_bandwidth", "matmul_by_size", "crossover", "host_device_transfer", "transpose", "reduction", "divergence"]
    return {name: _FOUND[name] for name in [*order, *sorted(set(_FOUND) - set(order))]}


def get(name: str) -> Experiment:
    """Raises KeyError, naming those that there are."""
    if name not in experiments():
        raise KeyError(f"no experiment '{name}'; there are {', '.join(experiments())}")
    return experiments()[name]
