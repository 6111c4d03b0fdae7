"""How alike two answers are: the share of their shingles that both have, what was given taken off both."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from autograder.similar.tokens import Shingle, shingles

MEASURED = Path(__file__).with_name("measured.yml")
LEAST = 60  # shingles of one's own: whoever has fewer has no room to differ
CROWD = 6  # answers from which on one can say what is common in a class


@dataclass(frozen=True)
class Pair:
    """Two answers to one cell. similarity: 0 to 1. common: the part of this that most have, too."""

    cell: str
    first: str
    second: str
    similarity: float
    common: float | None


def threshold() -> float:
    """The similarity from which on a pair is worth a look, as measured.yml derives it."""
    return float(yaml.safe_load(MEASURED.read_text(encoding="utf-8"))["threshold"])


def own(answer: str, given: str) -> Counter[Shingle]:
    """The shingles of an answer that are not in what was given."""
    return shingles(answer) - shingles(given)


def similarity(first: Counter[Shingle], second: Counter[Shingle]) -> float:
    """Twice what both have over what each has: 1 for the same, 0 for nothing in common (Dice)."""
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def pairs(cell: str, answers: Mapping[str, str], given: str, at_least: float) -> Iterator[Pair]:
    """The pairs of answers to one cell that are as similar as that. answers: {student: text}."""
    kept = {student: own(text, given) for student, text in sorted(answers.items())}
    kept = {student: found for student, found in kept.items() if found.total() >= LEAST}
    known = Counter(shingle for found in kept.values() for shingle in found)
    for (first, a), (second, b) in itertools.combinations(kept.items(), 2):
        shorter, longer = sorted((a.total(), b.total()))
        if 2 * shorter < at_least * (shorter + longer):
            continue  # even if all of the shorter were in the longer
        alike = similarity(a, b)
        if alike >= at_least:
            yield Pair(cell, first, second, alike, _common(a & b, known, len(kept)))


def _common(shared: Counter[Shingle], known: Counter[Shingle], answers: int) -> float | None:
    if answers < CROWD:
        return None
    usual = sum(count for shingle, count in shared.items() if 2 * known[shingle] > answers)
    return usual / max(1, shared.total())
