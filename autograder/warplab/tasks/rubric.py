"""The data of grading: rows of a rubric, cases, bounds on counters, and the report that is made of them."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

KINDS = ("correctness", "structure", "time")


def one_of(*words):
    """Of a text: it is one of these words."""
    return Meta(pattern=rf"\A({'|'.join(words)})\Z")


Text = Annotated[str, Meta(max_length=100_000)]
Points = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class Item:
    """One row of a rubric. Points are floats in [0, points]; its hints stand in tasks/psNN_hints.yml."""

    key: str
    points: float
    kind: str = "correctness"
    title: str = ""


@dataclass(frozen=True)
class Case:
    """One run of the submission.

    inputs: name -> ndarray, int, float, str, list or dict.  item: key of the rubric row that it belongs to.
    only: names of the results that this row compares; empty means all of them.
    memo: what has been worked out for this case, such as the expected values.
    """

    name: str
    inputs: dict
    item: str = ""
    only: tuple = ()
    memo: dict = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Bound:
    """Full points for a total of `full` or less, none for `zero` or more, a straight line between.

    Totals are absolute.
    counter: a key of Profile.as_dict(), or several joined by " + ".
    least: what the fewest steps that reach a right result count; whoever has less went past the counter.
    """

    counter: str
    full: float
    zero: float
    unit: str = ""
    least: float = 0.0

    def fraction(self, total):
        """Share of the points for this total, a float in [0, 1]; one that is not finite earns nothing."""
        if not math.isfinite(total) or total >= self.zero:
            return 0.0
        return 1.0 if total <= self.full else (self.zero - total) / (self.zero - self.full)

    def total(self, counters):
        """The sum of the named counters; NaN when one is missing."""
        return math.fsum(counters.get(name, math.nan) for name in self.counter.split(" + "))


@dataclass(frozen=True)
class Line:
    """One judged row. What a machine answers that judges for another is held to these annotations.

    hints: where points are lost, from vague to nearly the answer.
    access: the line of a kernel that costs most of what the row counts, where points are lost: a record of
    warplab.crossing.costliest, with "of" and "unit", the row's own total, and "source", the line's text
    where it is known.
    warnings: what the engine warned of while it ran. drawings: pictures of what is wrong, as
    warplab.tasks.drawn has them.
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
    """The judged task. Ungraded rows count neither in `score` nor in `max`; `ungraded` sums their points."""

    task: str
    lines: tuple

    @property
    def first(self):
        """(title, count) of the row to begin with: most others are lost to what it tells; None of no row."""
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
        """The rows of one grade cell: None is every row but the timed ones, "time" the timed ones."""
        return Report(self.task, tuple(line for line in self.lines if in_rubric(line.kind, rubric)))

    def as_dict(self):
        """JSON-able copy, for feedback files and gradebooks."""
        return {
            "task": self.task,
            "score": self.score,
            "max": self.max,
            "ungraded": self.ungraded,
            "lines": [dict(vars(line)) for line in self.lines],
        }


def same_error(title):
    """The reason of a row that is lost to an error which the row `title` tells."""
    return f"stopped by the same error as {title!r}"


def right_first(title):
    """The reason of a row of counters where the row `title` tells what is wrong with the result."""
    return f"only counted for a right result: put {title!r} right first"


def explained_by(reason: str) -> str | None:
    """The title of the row that tells why this one is lost; None where this one tells it itself."""
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
    """1 block, 2 blocks, 1,000 blocks, 0.5 points."""
    return f"{int(count) if count == int(count) else count:,} {noun}{'' if count == 1 else 's'}"


def number(value):
    """A total with thousands separators, or a small number with three digits: 16,384 and 0.75."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"
