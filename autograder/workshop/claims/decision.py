"""What a deciding function returns: the readings of a claim, true or false each, and
the numbers that the page quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOLDS, HOLDS_IF, WRONG = "holds", "holds if", "wrong"


@dataclass(frozen=True)
class Decision:
    """``readings``: ways to understand the claim -> whether it is true that way.
    ``numbers``: what the text quotes.
    """

    readings: dict[str, bool]
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        true = sum(map(bool, self.readings.values()))
        return WRONG if not true else HOLDS if true == len(self.readings) else HOLDS_IF
