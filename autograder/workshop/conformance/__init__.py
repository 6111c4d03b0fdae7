"""numba-cuda's own test suite on the engine: the results of the last complete run, and reasons of failures.

``python -m workshop.conformance --record`` runs the suite and writes ``results.json``; ``reasons.yml`` has
the reason of each failure.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import yaml

from warplab.rendering import render

RESULTS = Path(__file__).with_name("results.json")
REASONS = Path(__file__).with_name("reasons.yml")


@dataclass(frozen=True)
class Tally:
    """How many tests there are (``total``), how many passed, and how many the suite itself skipped."""

    passed: int
    total: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed:,} of {self.total:,} pass, {self.skipped} skipped"


@dataclass(frozen=True)
class Reason:
    """Why some tests fail.

    fault: "suite" (the test's own), "engine" (ours) or "setting" (something is not installed).
    """

    tests: tuple[str, ...]
    fault: str
    because: str


class Recorded:
    """The complete run in ``results.json``; displayed as a table in a notebook."""

    def __init__(self, data: dict):
        self.numba_cuda, self.date = data["numba_cuda"], data["date"]
        self._data = data

    @property
    def engine(self) -> Tally:
        return tally(self._data["engine"])

    @property
    def simulator(self) -> Tally:
        """The same suite on numba's own simulator."""
        return tally(self._data["simulator"])

    def modules(self) -> dict[str, dict]:
        """{module: {"pass": count, "skip": count, "fail": {test: the last line of its error}}}."""
        return self._data["engine"]

    def failures(self) -> dict[str, str]:
        """{test: the last line of its error} on the engine."""
        return {test: why for module in self._data["engine"].values() for test, why in module["fail"].items()}

    def _repr_html_(self) -> str:
        return render("workshop.conformance", "conformance.html.j2", run=self, reasons=reasons())


def tally(modules: dict[str, dict]) -> Tally:
    """The sum of the results of modules, in the form of Recorded.modules()."""
    passed, skipped, failed = (
        sum(n) for n in zip(*((m["pass"], m["skip"], len(m["fail"])) for m in modules.values()), strict=True)
    )
    return Tally(passed, passed + skipped + failed, skipped)


def recorded() -> Recorded:
    """The last complete run on the engine and on numba's simulator."""
    return Recorded(json.loads(RESULTS.read_text()))


@functools.cache
def reasons() -> tuple[Reason, ...]:
    """The reasons of all failures, from ``reasons.yml``."""
    return tuple(
        Reason(tuple(entry["tests"]), entry["fault"], " ".join(entry["because"].split()))
        for entry in yaml.safe_load(REASONS.read_text())
    )
