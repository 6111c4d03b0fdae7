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
    """One claim. section: a heading of `page` that discusses it ("" if none does). code: name of the function
    that decides it, "" for one decided by sources. cite: keys of the bibliography.
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
        """The present result of the arithmetic; None for a claim that sources decide. Raises KeyError for an
        unknown function.
        """
        return functions()[self.code]() if self.code else None

    def reason(self) -> str:
        """`why`, with the numbers of its function put in."""
        decision = self.decide()
        return self.why.format(**decision.numbers) if decision else self.why


def path() -> Path:
    """The ledger's file."""
    return Path(__file__).with_name("claims.yml")


@functools.cache
def ledger() -> tuple[Claim, ...]:
    """Every claim in the order of the file."""
    rows = yaml.safe_load(path().read_text(encoding="utf-8"))
    return tuple(Claim(**{**row, "cite": tuple(row.get("cite", ()))}) for row in rows)


@functools.cache
def functions() -> dict[str, Callable[[], Decision]]:
    """{name: deciding function} of all themes."""
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
