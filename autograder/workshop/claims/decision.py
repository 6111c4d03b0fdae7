"""The result of a function that decides a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOLDS, HOLDS_IF, WRONG = "holds", "holds if", "wrong"


@dataclass(frozen=True)
class Decision:
    """readings: {a way to understand the claim: whether it is true}. numbers: {name: value} for the text."""

    readings: dict[str, bool]
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        true = sum(map(bool, self.readings.values()))
        return WRONG if not true else HOLDS if true == len(self.readings) else HOLDS_IF
