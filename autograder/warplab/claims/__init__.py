"""The claims ledger: what popular accounts say about GPUs, and the arithmetic that decides whether it holds.

``chapters/claims.yml`` has the claims, their verdicts and why; a verdict that arithmetic or the hardware registry can decide
names a function of this package. Each such function returns a Decision: the readings under which the claim was tried (true or
false each) and the numbers that the page quotes. All readings true: it holds; none: it is wrong; some: it holds if.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HOLDS, HOLDS_IF, WRONG = "holds", "holds if", "wrong"


@dataclass(frozen=True)
class Decision:
    """``readings``: ways to understand the claim -> whether it is true that way. ``numbers``: what the text quotes."""

    readings: dict[str, bool]
    numbers: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        true = sum(map(bool, self.readings.values()))
        return WRONG if not true else HOLDS if true == len(self.readings) else HOLDS_IF


@dataclass(frozen=True)
class Claim:
    """One line of the ledger. ``section`` is a heading of ``page`` ("" if no page decides it yet); ``code`` names a function here."""

    id: str
    chapter: int
    claim: str
    verdict: str
    why: str
    page: str = ""
    section: str = ""
    code: str = ""
    cite: tuple[str, ...] = ()

    def decide(self) -> Decision | None:
        """What the arithmetic says now; None for a claim that a source and not arithmetic decides. Raises KeyError for an unknown name."""
        return functions()[self.code]() if self.code else None

    def reason(self) -> str:
        """``why`` with the numbers that its function computed."""
        decision = self.decide()
        return self.why.format(**decision.numbers) if decision else self.why


def path() -> Path:
    """The ledger's file in a checkout of the course."""
    return Path(__file__).resolve().parents[3] / "chapters" / "claims.yml"


def ledger(file: Path | None = None) -> list[Claim]:
    """Every claim in the order of the file."""
    import yaml

    rows = yaml.safe_load((file or path()).read_text(encoding="utf-8"))
    return [Claim(**{**row, "cite": tuple(row.get("cite", ()))}) for row in rows]


@functools.cache
def functions() -> dict[str, Callable[[], Decision]]:
    """Name -> deciding function, of all themes."""
    from . import fit, machines, systems, work

    found: dict[str, Callable[[], Decision]] = {}
    for theme in (machines, work, fit, systems):
        for name, value in vars(theme).items():
            if callable(value) and getattr(value, "__module__", "") == theme.__name__ and not name.startswith("_"):
                found[name] = value
    return found
