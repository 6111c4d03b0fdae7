"""A puzzle: what it compares, what it says to the right answer, to wrong ones and to a blank.

The question stands in the notebook, with `...` in the place of the answer:

    puzzle("ps05/stride", ...)
    puzzle("ps05/waste", lambda lane: ...)

The answer stands nowhere: it is computed, by a task's reference or by counting on the engine, when somebody
asks.
"""

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from warplab.crossing.explain import explain
from warplab.rendering import render
from warplab.tasks import registry
from warplab.tasks.feedback import CODE, show

COLOURS = {"right": "#2a9d6f", "wrong": "#c98a1b", "open": "#7a869a"}
HEADS = {"right": "Yes, {}.", "wrong": "{}? Not quite.", "open": "Your turn."}

_declared: dict[str, Callable[[], "Puzzle"]] = {}


@dataclass(frozen=True)
class Puzzle:
    """What a puzzle says.

    answer: a number, a word, or what `of` makes of a function that is right.
    why: said to the right answer.
    slips: {a wrong answer: what it would mean}, as `of` gives it for functions.
    otherwise: the next thought for any other answer, or a function of the answer that gives it.
    within: how far a number may be off, as a share of the answer.
    of: for puzzles whose answer is a function: what is compared of it, a number or a tuple of numbers.
    picture: for such a puzzle, an SVG of the student's own function.
    """

    answer: Any
    why: str
    slips: Mapping[Any, str] = field(default_factory=dict)
    otherwise: str | Callable[[Any], str] = ""
    within: float = 1e-9
    of: Callable[[Any], Any] | None = None
    picture: Callable[[Any], str] | None = None

    def reply(self, given):
        """What is said to one answer."""
        obstacle = self._obstacle(given)
        if obstacle:
            return Told("open", "", obstacle)
        if self.of is None:
            return self._verdict(given, _shown(given))
        try:
            if given(*[0] * len(inspect.signature(given).parameters)) is ...:
                return Told("open", "", "Put an expression in the place of `...` and run the cell.")
            found = self.of(given)
            drawn = self.picture(given) if self.picture else ""
            return self._verdict(found, _shown(found) if isinstance(found, Real) else "", drawn)
        except Exception as error:  # noqa: BLE001 - whatever a student's expression raises is told as the reply
            return Told("open", "", f"Your expression cannot be tried: {explain(error)}.")

    def _obstacle(self, given):
        """Why this cannot be compared at all, with the next step; "" if it can."""
        if given is ...:
            return "Put your guess in the place of `...` and run the cell."
        if self.of is not None:
            return "" if callable(given) else "A function is asked for here: leave `lambda` where it stands."
        if isinstance(self.answer, str):
            asked = "A word is asked for here, in quotation marks."
            return "" if isinstance(given, str) else asked
        if not isinstance(given, Real) or isinstance(given, bool):
            return f"A number is asked for here, and {_shown(given)} is none."
        return "" if _finite(given) else "A finite number is asked for here."

    def _verdict(self, given, shown, drawn=""):
        if self._same(given, self.answer):
            return Told("right", shown, self.why, drawn)
        for wrong, meaning in self.slips.items():
            if self._same(given, wrong):
                return Told("wrong", shown, meaning, drawn)
        thought = self.otherwise(given) if callable(self.otherwise) else self.otherwise
        return Told("wrong", shown, thought, drawn)

    def _same(self, given, known):
        if isinstance(known, str):
            return given.strip().casefold() == known.casefold()
        if isinstance(known, tuple):
            return len(given) == len(known) and all(map(self._same, given, known))
        return abs(given - known) <= self.within * abs(known)


@dataclass(frozen=True)
class Told:
    """What the cell shows, as HTML in the page's own colours or as text. state: "right", "wrong", "open"."""

    state: str
    given: str
    text: str
    picture: str = ""

    @property
    def head(self):
        head = HEADS[self.state]
        return head.format(self.given) if self.given else head.replace(", {}", "").replace("{}? ", "")

    def __repr__(self):
        return f"{self.head} {self.text}"

    def _repr_html_(self):
        return render(
            "warplab.puzzles", "puzzle.html.j2", reply=self, colour=COLOURS[self.state], code_spans=CODE.split
        )


def ask(name, answer):
    """warplab.check.puzzle."""
    show(get(name).reply(answer))


def asks(name):
    """Decorator: the function makes the puzzle called `name`, when it is first asked."""

    def declare(make):
        _declared[name] = functools.cache(make)
        return make

    return declare


def get(name):
    """The Puzzle called `name`, for example "ps05/waste". Raises UnknownName with those of its set."""
    known = names(name.partition("/")[0])
    if name not in known:
        raise registry.UnknownName("puzzle", name, known or names())
    return _declared[name]()


def names(problem_set=None):
    """Names of the puzzles of one set ("ps05"), in their order; None: of all sets."""
    for module in sorted(Path(__file__).parent.glob(f"{problem_set or 'ps*'}_puzzles.py")):
        importlib.import_module(f"warplab.puzzles.{module.stem}")
    by_set = sorted(_declared, key=lambda name: name.partition("/")[0])
    return [name for name in by_set if problem_set is None or name.startswith(f"{problem_set}/")]


def reference(task, **inputs):
    """{name of a result: plain value} of a task's own reference."""
    return {key: value.tolist() for key, value in registry.get(task).reference(inputs).items()}


def _finite(number):
    """Whether it can be compared with a float: some whole numbers are too large for that."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _shown(value):
    if isinstance(value, bool) or not isinstance(value, Real):
        return f'"{value}"' if isinstance(value, str) else str(value)
    return f"{math.floor(value):,}" if float(value).is_integer() else f"{float(value):,.7g}"
