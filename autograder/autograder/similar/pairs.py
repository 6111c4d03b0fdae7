"""The similarity of two answers: the share of shingles that both have, without those of the given code."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from autograder.similar.tokens import Shingle, shingles

MEASURED = Path(__file__).with_name("measured.yml")
LEAST = 60  # shingles of their own that answers must have to be compared; shorter ones hardly can differ
CROWD = 6  # answers needed to tell what is common in a class


@dataclass(frozen=True)
class Pair:
    """Two answers to one cell. first, second: students. similarity: 0 to 1.

    common: the part (0-1) of what both have that most answers of the class have, too; None in a small class.
    """

    cell: str
    first: str
    second: str
    similarity: float
    common: float | None


def threshold() -> float:
    """The similarity from which on a pair is reported; measured.yml has its derivation."""
    return float(yaml.safe_load(MEASURED.read_text(encoding="utf-8"))["threshold"])


def own_shingles(answer: str, given: str) -> Counter[Shingle]:
    """The shingles of an answer that are not in the given code."""
    return shingles(answer) - shingles(given)


def similarity(first: Counter[Shingle], second: Counter[Shingle]) -> float:
    """Dice's coefficient of two multisets: 1 for equal ones, 0 for nothing in common."""
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def pairs(cell: str, answers: Mapping[str, str], given: str, at_least: float) -> Iterator[Pair]:
    """Yield the pairs of answers with a similarity of `at_least`. answers: {student: text}."""
    kept = {student: own_shingles(text, given) for student, text in sorted(answers.items())}
    kept = {student: found for student, found in kept.items() if found.total() >= LEAST}
    known = Counter(shingle for found in kept.values() for shingle in found)
    for (first, a), (second, b) in itertools.combinations(kept.items(), 2):
        shorter, longer = sorted((a.total(), b.total()))
        if 2 * shorter < at_least * (shorter + longer):
            continue  # too different in length, even if the longer one contained the shorter
        alike = similarity(a, b)
        if alike >= at_least:
            yield Pair(cell, first, second, alike, _common(a & b, known, len(kept)))


def _common(shared: Counter[Shingle], known: Counter[Shingle], answers: int) -> float | None:
    if answers < CROWD:
        return None
    usual = sum(count for shingle, count in shared.items() if 2 * known[shingle] > answers)
    return usual / max(1, shared.total())
