"""One total a student over several sets. What is open stays beside the total and never counts as 0."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.csv_tables import csv_text, guard
from autograder.gradebook.export import figure
from autograder.gradebook.standing import Standing
from autograder.user_error import UserError

LAST = tuple("score out_of ungraded_points manual_points_pending late_penalty without_score dropped".split())


@dataclass(frozen=True)
class Total:
    """score: points given in the sets that count. out_of: the points that can be had of what is judged there.

    sets: {set: score, or None without one}. without_score: sets that could not be graded or never came.
    """

    student: str
    sets: dict[str, float | None]
    score: float
    out_of: float
    ungraded: float
    manual: float
    penalty: float
    without_score: tuple[str, ...]
    dropped: tuple[str, ...]


def totals(standings: Iterable[Standing], drop: int = 0, missing_zero: bool = False) -> list[Total]:
    """One Total for each student of any set.

    drop: how many of the lowest sets do not count, by their share of the points that are judged; what was not
    handed in is the lowest, and what could not be graded is never dropped. missing_zero: what was not handed
    in counts 0 out of all its points. Raises UserError where so many sets cannot be dropped.
    """
    most: dict[str, float] = {}
    known: defaultdict[str, dict[str, Standing]] = defaultdict(dict)
    for one in standings:
        most[one.assignment] = max(one.max, most.get(one.assignment, 0.0))
        known[one.student][one.assignment] = one
    if drop and drop >= len(most):
        raise UserError(
            f"--drop-lowest {drop} of {len(most)} sets leaves none; drop fewer, or name more sets"
        )
    return [
        _total(
            student,
            [mine.get(name) or Standing(student, name, most[name], "missing") for name in most],
            drop,
            missing_zero,
        )
        for student, mine in sorted(known.items())
    ]


def _total(student: str, sets: Sequence[Standing], drop: int, missing_zero: bool) -> Total:
    ranked = sorted((_share(one), one.assignment) for one in sets if one.status == "missing" or one.decided)
    dropped = tuple(sorted(name for _, name in ranked[:drop]))
    counted = [one for one in sets if one.assignment not in dropped]
    lost = [one.max for one in counted if missing_zero and one.status == "missing"]
    return Total(
        student,
        {one.assignment: one.score if one.has_score else None for one in sets},
        math.fsum(one.score for one in counted),
        math.fsum([*(one.decided for one in counted), *lost]),
        math.fsum(one.open("ungraded") for one in counted),
        math.fsum(one.open("manual") for one in counted),
        math.fsum(one.penalty for one in counted if one.has_score),
        tuple(
            one.assignment for one in counted
            if not one.has_score and not (missing_zero and one.status == "missing")
        ),
        dropped,
    )  # fmt: skip


def _share(one: Standing) -> float:
    """Of what is judged; below 0 for what never came."""
    return one.score / one.decided if one.has_score else -1.0


def totals_csv(found: Sequence[Total]) -> str:
    """The table as CSV text, for people and their spreadsheets."""
    names = list(found[0].sets) if found else []
    rows: list[Sequence[str]] = [("student_id", *names, *LAST)]
    for one in found:
        scores = ("" if score is None else figure(score) for score in one.sets.values())
        sums = (one.score, one.out_of, one.ungraded, one.manual, one.penalty)
        lists = (" ".join(one.without_score), " ".join(one.dropped))
        rows.append((guard(one.student), *scores, *map(figure, sums), *lists))
    return csv_text(rows)
