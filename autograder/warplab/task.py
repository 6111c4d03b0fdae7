"""What a graded task is: data on both sides of one boundary.

    judge side      task.cases(seed)                   -> [Case]     inputs only, fresh and random
    student side    run(task, case, entry, plan)       -> Outcome    the only call that touches student objects
    judge side      task.judge(cases, outcomes)        -> Report     compares, counts, gives points

Cases and outcomes hold JSON values and plain arrays, so the middle step can move to another process without a change to
any task. In a student's notebook all three run in one process (warplab.check).
"""

import importlib
import math
import re
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from warplab import crossing
from warplab.compare import difference
from warplab.plain import NotPlain, as_array

KINDS = ("correctness", "structure", "time")


@dataclass(frozen=True)
class Item:
    """One row of a rubric. Points are floats in [0, points]; `hint` is shown when points are lost."""

    key: str
    points: float
    kind: str = "correctness"
    title: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Case:
    """One run of the submission.

    inputs: name -> ndarray, int, float, str, list or dict.  item: key of the rubric row that it belongs to.
    only: names of the results that this row compares; empty means all of them.
    """

    name: str
    inputs: dict
    item: str = ""
    only: tuple = ()


@dataclass(frozen=True)
class Outcome:
    """What came back for the case called `case`: plain arrays and counters, or one sentence on why there is no result.

    modified: names of the inputs that the submission changed.
    """

    case: str
    outputs: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)
    error: str | None = None
    modified: tuple = ()


@dataclass(frozen=True)
class Bound:
    """Full points for a total of `full` or less, none for `zero` or more, a straight line between: absolute totals.

    counter: a key of Profile.as_dict(), or several joined by " + ".
    """

    counter: str
    full: float
    zero: float
    unit: str = ""

    def fraction(self, total):
        """Share of the points for this total, a float in [0, 1]; a total that is not a finite number earns nothing."""
        if not math.isfinite(total) or total >= self.zero:
            return 0.0
        return 1.0 if total <= self.full else (self.zero - total) / (self.zero - self.full)

    def total(self, counters):
        """The sum of the named counters; NaN when one is missing."""
        return math.fsum(counters.get(name, math.nan) for name in self.counter.split(" + "))


@dataclass(frozen=True)
class Line:
    """One judged row. state: "full", "partial", "lost" or "ungraded"."""

    key: str
    kind: str
    title: str
    points: float
    max: float
    state: str
    reason: str = ""
    hint: str = ""
    counters: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """The judged task. Ungraded rows count neither in `score` nor in `max`; their points are summed in `ungraded`."""

    task: str
    lines: tuple

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


class Task:
    """Base of every task. A subclass is data first: entry, crossing, arguments, items; then cases and reference.

    Set by @task: name, points.  To be given by the subclass:
    entry        name of the submission in the student's namespace
    crossing     "kernel", "function" or "device"
    arguments    names, in order, that the submission receives: keys of Case.inputs, or for a kernel also of result()
    returns      function, device: result name -> kind (see warplab.plain.as_array)
    items        the rubric
    make_cases(rng) -> [Case];  reference(inputs) -> {result: float64 or integer array}
    result(inputs) -> {output: (shape, dtype)}           kernel: the arrays that it must fill
    tolerance(inputs, expected) -> {result: tolerance}   default: exact
    bounds(inputs) -> {item key: Bound}                  structure items
    plan(inputs) -> (grid, block)                        kernel: the launch, unless `plan_entry` names the student's own
    """

    name = ""
    points = 0.0
    entry = ""
    plan_entry = None
    crossing = "function"
    arguments = ()
    returns = {}
    items = ()

    def cases(self, seed=0):
        """Inputs for every rubric row. The same seed (a non-negative int of any size) gives the same cases."""
        cases, names = [], set()
        for case in self.make_cases(np.random.default_rng([seed, zlib.crc32(self.name.encode())])):
            if case.name in names:  # two random sizes may agree
                case = replace(case, name=f"{case.name} ({len(names)})")
            names.add(case.name)
            cases.append(case)
        return cases

    def make_cases(self, rng):
        raise NotImplementedError

    def reference(self, inputs):
        raise NotImplementedError

    def tolerance(self, inputs, expected):
        return {}

    def bounds(self, inputs):
        return {}

    def item(self, key):
        """The rubric row with this key."""
        return next(item for item in self.items if item.key == key)

    def points_for(self, rubric=None):
        """Points of one grade cell: rubric None is all but the timed rows, "time" the timed rows."""
        return float(sum(item.points for item in self.items if in_rubric(item.kind, rubric)))

    def judge(self, cases, outcomes):
        """Compare outcomes with the reference, row by row. A missing or malformed outcome loses its row, no more."""
        found = {outcome.case: outcome for outcome in outcomes}
        lines, seen = [], {}
        for item in self.items:
            line = self._line(item, cases, found)
            failure = next((found[c.name].error for c in cases if c.item == item.key and c.name in found), None)
            if failure:
                first = seen.setdefault(re.sub(r"\d+", "0", failure), line)
                if first is not line:
                    line = replace(line, reason=f"stopped by the same error as {first.title!r}", hint="")
            lines.append(line)
        return Report(self.name, tuple(lines))

    def _line(self, item, cases, found):
        mine = [case for case in cases if case.item == item.key]
        counters = {case.name: _finite(found[case.name].counters) for case in mine if case.name in found}
        if item.kind == "time" and not any("time.seconds" in row for row in counters.values()):
            failed = next((found[case.name].error for case in mine if case.name in found and found[case.name].error), None)
            if failed is None:
                return Line(
                    item.key,
                    item.kind,
                    item.title,
                    0.0,
                    item.points,
                    "ungraded",
                    "timed on a CUDA device only: no points are lost without one",
                    "",
                    {},
                )
        share, told = 1.0, {}
        for case in mine:
            fraction, text = self._judge_case(item, case, found.get(case.name))
            share = min(share, fraction)
            if text:
                told.setdefault(text, case.name)
        others = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        right = {1: "right", 2: "right in both cases"}.get(len(mine), f"right in all {len(mine)} cases")
        reason = next((f"{name}{others}: {text}" for text, name in told.items()), right)
        points = round(float(item.points * min(max(share, 0.0), 1.0)), 2) if mine else 0.0
        state = "full" if points == item.points else "partial" if points > 0 else "lost"
        return Line(
            item.key,
            item.kind,
            item.title,
            points,
            item.points,
            state,
            reason,
            "" if state == "full" else item.hint,
            counters,
        )

    def _judge_case(self, item, case, outcome):
        """(share of the row's points, why) for one case."""
        wrong = self.wrong_result(case, outcome)
        if wrong:
            return 0.0, f"only counted for a right result: {wrong}" if item.kind != "correctness" else wrong
        if item.kind == "correctness":
            return 1.0, ""
        bound = self.bounds(case.inputs)[item.key]
        total = bound.total(_finite(outcome.counters))
        limits = f"full points up to {number(bound.full)}, none from {number(bound.zero)}"
        return bound.fraction(total), f"{number(total) if math.isfinite(total) else 'no'} {bound.unit or bound.counter}; {limits}"

    def wrong_result(self, case, outcome):
        """Why this outcome is not a right result, in one sentence; None when it is right."""
        if outcome is None:
            return "no result came back"
        if outcome.error:
            return outcome.error
        if outcome.modified:
            return f"input `{outcome.modified[0]}` was changed; it must stay as it was"
        expected = self.reference(case.inputs)
        tolerance = self.tolerance(case.inputs, expected)
        for name, want in expected.items():
            if case.only and name not in case.only:
                continue
            if name not in outcome.outputs:
                return f"`{name}` did not come back"
            try:
                got = as_array(outcome.outputs[name], self.kind_of(name, case.inputs))
            except NotPlain as problem:
                return f"`{name}`: {problem}"
            before = self.untouched(name, case.inputs)
            wrong = difference(name, got, np.asarray(want), tolerance.get(name, 0.0), before)
            if wrong:
                return wrong
        return None

    def untouched(self, name, inputs):
        """What result `name` holds before the submission runs: None, but for kernels."""
        return None

    def kind_of(self, name, inputs):
        """The kind (warplab.plain) of result `name`."""
        return self.returns[name]


class KernelTask(Task):
    """A task whose submission is a @cuda.jit kernel that fills output arrays."""

    crossing = "kernel"

    def result(self, inputs):
        raise NotImplementedError

    def plan(self, inputs):
        raise NotImplementedError

    def plan_arguments(self, inputs):
        """Keyword arguments of the student's plan function: the shapes."""
        return {}

    def untouched(self, name, inputs):
        return crossing.poisoned(*self.result(inputs)[name])

    def kind_of(self, name, inputs):
        return np.dtype(self.result(inputs)[name][1]).name


_registry = {}


def task(name, points):
    """Class decorator: register one instance under `name`, for example "ps04/matmul_tiled"."""

    def register(cls):
        cls.name, cls.points = name, float(points)
        total = math.fsum(item.points for item in cls.items)
        if total != cls.points:
            raise ValueError(f"{name}: its items add up to {total:g} points, expected {points:g}")
        if any(item.kind not in KINDS for item in cls.items) or cls.crossing not in crossing.CROSSINGS:
            raise ValueError(f"{name}: unknown kind of item or crossing")
        _registry[name] = cls()
        return cls

    return register


def get(name):
    """The task called `name`. Raises KeyError with the names that exist."""
    names(name.split("/")[0])
    if name not in _registry:
        raise KeyError(f"no task is called {name!r}; known tasks: {', '.join(names())}")
    return _registry[name]


def names(problem_set=None):
    """Task names of one problem set ("ps04") in the order of its file, none for an unknown set; None: of all sets."""
    folder = Path(__file__).with_name("tasks")
    for module in sorted(folder.glob("ps*.py")):
        if problem_set in (None, module.stem):
            importlib.import_module(f"warplab.tasks.{module.stem}")
    return [name for name in _registry if problem_set is None or name.startswith(f"{problem_set}/")]


def in_rubric(kind, rubric):
    """Whether an item of this kind belongs to the grade cell `rubric` (None: all but "time")."""
    if rubric not in (None, "time"):
        raise ValueError(f"rubric is {rubric!r}, expected None or 'time'")
    return (kind == "time") == (rubric == "time")


def run(task, case, entry, plan=None):
    """Run a submission on one case and return an Outcome.

    The only function that touches student objects; whatever they do, it does not raise (Ctrl-C excepted).
    """
    kinds = {item.key: item.kind for item in task.items}
    cross = crossing.run_timed if kinds.get(case.item) == "time" else crossing.CROSSINGS[task.crossing]
    try:
        outputs, counters, modified = cross(task, case, entry, plan)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a student's SystemExit is a mistake, not an order to this program
        return Outcome(case.name, error=crossing.explain(error))
    return Outcome(case.name, outputs, counters, None, modified)


def number(value):
    """A total with thousands separators, or a small number with three digits: 16,384 and 0.75."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"


def _finite(counters):
    """Counters that are real, finite numbers; anything else is dropped."""
    return {str(key): float(value) for key, value in dict(counters).items() if type(value) in (int, float) and math.isfinite(value)}
