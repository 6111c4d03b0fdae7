"""The ledger: every claim of claims.yml, and which function decides it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from workshop.claims import fit, machines, systems, work
from workshop.claims.decision import Decision


@dataclass(frozen=True)
class Claim:
    """One line of the ledger. ``section`` is a heading of ``page`` ("" if no page
    decides it yet); ``code`` names a function here.
    """

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
        """What the arithmetic says now; None for a claim that a source and not
        arithmetic decides. Raises KeyError for an unknown name.
        """
        return functions()[self.code]() if self.code else None

    def reason(self) -> str:
        """``why`` with the numbers that its function computed."""
        decision = self.decide()
        return self.why.format(**decision.numbers) if decision else self.why


def path() -> Path:
    """The ledger's file."""
    return Path(__file__).with_name("claims.yml")


def ledger(file: Path | None = None) -> list[Claim]:
    """Every claim in the order of the file."""
    rows = yaml.safe_load((file or path()).read_text(encoding="utf-8"))
    return [Claim(**{**row, "cite": tuple(row.get("cite", ()))}) for row in rows]


@functools.cache
def functions() -> dict[str, Callable[[], Decision]]:
    """Name -> deciding function, of all themes."""
    found: dict[str, Callable[[], Decision]] = {}
    for theme in (machines, work, fit, systems):
        for name, value in vars(theme).items():
            if (
                callable(value)
                and getattr(value, "__module__", "") == theme.__name__
                and not name.startswith("_")
            ):
                found[name] = value  # pyright: ignore[reportArgumentType] - a theme's public functions decide
    return found
