"""The data of grading: rows of a rubric, cases, bounds on counters, and reports."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

KINDS = ("correctness", "structure", "time")


def one_of(*words):
    """A msgspec constraint: the string is one of these words."""
    return Meta(pattern=rf"\A({'|'.join(words)})\Z")


Text = Annotated[str, Meta(max_length=100_000)]
Points = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class Item:
    """One row of a rubric, worth `points`. Its hints are in tasks/psNN_hints.yml."""

    key: str
    points: float
    kind: str = "correctness"
    title: str = ""


@dataclass(frozen=True)
class Case:
    """One run of the submission.

    inputs: {name: ndarray, int, float, str, list or dict}. item: key of the rubric row that it belongs to.
    only: names of the results that this row compares; () for all of them.
    memo: a cache for values computed from this case, such as the expected results.
    """

    name: str
    inputs: dict
    item: str = ""
    only: tuple = ()
    memo: dict = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Bound:
    """Full points for a total of `full` or less, none for `zero` or more, linear in between.

    counter: a key of Profile.as_dict(), or several joined by " + ", whose sum is the total.
    least: the smallest total that a right result needs; a smaller one means that the counter was evaded.
    """

    counter: str
    full: float
    zero: float
    unit: str = ""
    least: float = 0.0

    def fraction(self, total):
        """The share of the points for this total, a float in [0, 1]; 0 for a total that is not finite."""
        if not math.isfinite(total) or total >= self.zero:
            return 0.0
        return 1.0 if total <= self.full else (self.zero - total) / (self.zero - self.full)

    def total(self, counters):
        """The sum of the named counters; NaN when one is missing."""
        return math.fsum(counters.get(name, math.nan) for name in self.counter.split(" + "))


@dataclass(frozen=True)
class Line:
    """One judged row. Answers from other machines are validated against these annotations.

    hints: if points are lost, from vague to nearly the answer.
    access: if points are lost, the costliest line of the kernel: a record of warplab.crossing.costliest, with
    "of" and "unit" (the row's own total) and "source" (the line's text, if known).
    warnings: of the engine. drawings: what is wrong, as data of warplab.tasks.drawn.
    """

    key: Annotated[str, Meta(max_length=100)]
    kind: Annotated[str, one_of(*KINDS)]
    title: Text
    points: Points
    max: Points
    state: Annotated[str, one_of("full", "partial", "lost", "ungraded")]
    reason: Text = ""
    hints: Annotated[tuple[Text, ...], Meta(max_length=20)] = ()
    counters: dict[str, dict[str, float]] = field(default_factory=dict)
    access: dict = field(default_factory=dict)
    warnings: Annotated[tuple[Text, ...], Meta(max_length=1000)] = ()
    drawings: Annotated[tuple[dict, ...], Meta(max_length=100)] = ()


@dataclass(frozen=True)
class Report:
    """A judged task. Ungraded rows count neither in `score` nor in `max`; `ungraded` sums their points."""

    task: str
    lines: tuple

    @property
    def first(self):
        """(title of the row to mend first, number of rows lost because of it); None if there is none."""
        named = Counter(title for line in self.lines if (title := explained_by(line.reason)))
        return next(iter(named.most_common(1)), None)

    @property
    def score(self):
        return float(round(sum(line.points for line in self.lines if line.state != "ungraded"), 2))

    @property
    def max(self):
        return float(sum(line.max for line in self.lines if line.state != "ungraded"))

    @property
    def ungraded(self):
        return float(sum(line.max for line in self.lines if line.state == "ungraded"))

    def part(self, rubric=None):
        """The report of one grade cell: rubric "time" for the timed rows, None for all others."""
        return Report(self.task, tuple(line for line in self.lines if in_rubric(line.kind, rubric)))

    def as_dict(self):
        """A JSON-able copy."""
        return {
            "task": self.task,
            "score": self.score,
            "max": self.max,
            "ungraded": self.ungraded,
            "lines": [dict(vars(line)) for line in self.lines],
        }


def same_error(title):
    """The reason of a row lost to an error that the row `title` explains."""
    return f"stopped by the same error as {title!r}"


def right_first(title):
    """The reason of a row of counters that is lost to a wrong result that the row `title` explains."""
    return f"only counted for a right result: put {title!r} right first"


def explained_by(reason: str) -> str | None:
    """The title of the row that explains why this one is lost; None if its reason explains it."""
    found = re.fullmatch(
        r"(?:stopped by the same error as|only counted.*: put) (['\"])(.*)\1(?: right first)?", reason
    )
    return found[2] if found else None


def in_rubric(kind, rubric):
    """Whether an item of this kind belongs to the grade cell `rubric` (None: all but "time")."""
    if rubric not in (None, "time"):
        raise ValueError(f"rubric is {rubric!r}, expected None or 'time'")
    return (kind == "time") == (rubric == "time")


def so_many(count, noun):
    """A number with its noun: "1 block", "2 blocks", "1,000 blocks", "0.5 points"."""
    return f"{int(count) if count == int(count) else count:,} {noun}{'' if count == 1 else 's'}"


def number(value):
    """A number as text, with thousands separators or three significant digits: "16,384", "0.75"."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"
