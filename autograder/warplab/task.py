"""What a graded task is: data on both sides of one boundary.

    task.cases(seed)                 -> [Case]     inputs only, fresh and random
    the crossing (warplab.crossing)  -> Outcome    the student's code and, for kernels, the executor
    task.judge(cases, outcomes)      -> Report     compares, counts, gives points

Cases and outcomes hold JSON values and plain arrays. In a student's notebook all three run in one process (warplab.check);
when a submission is graded the middle one runs in processes that know no task, no expected value and no score.
"""

import functools
import importlib
import math
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from warplab import crossing
from warplab.compare import difference, gradient_check
from warplab.crossing.ranks import result_name
from warplab.device import device
from warplab.plain import NotPlain, as_array
from warplab.rubric import KINDS, Bound, Case, Item, Line, Outcome, Report, in_rubric, number

__all__ = [
    "COPY",
    "Bound",
    "Case",
    "DriverTask",
    "Item",
    "KernelTask",
    "Line",
    "Outcome",
    "RanksTask",
    "Report",
    "Task",
    "VjpTask",
    "can_time",
    "get",
    "in_rubric",
    "names",
    "number",
    "outcome_of",
    "run",
    "task",
]


class Task:
    """Base of every task. A subclass is data first: entry, crossing, arguments, items; then cases and reference.

    Set by @task: name, points.  To be given by the subclass:
    entry        name of the submission in the student's namespace
    crossing     how it crosses: a key of warplab.crossing.CROSSINGS
    arguments    names, in order, that the submission receives: keys of Case.inputs (no other input leaves the judge), for
                 kernels and drivers also of result(), and "device" where the crossing has one
    returns      function, device, ranks: result name -> kind (see warplab.plain.as_array)
    measured     names of counters that may be measured beside the student's code: forgeable, so worth <= 20 % of the task
    items        the rubric
    make_cases(rng) -> [Case]                            all cases but the timed ones
    reference(inputs) -> {result: float64 or integer array}
    device(inputs) -> VirtualDevice                      device: the judge's device for one case
    tolerance(inputs, expected) -> {result: tolerance}   default: exact
    bounds(inputs) -> {item key: Bound}                  structure items
    Kernels, drivers, vjp and ranks have base classes below, which say what else they need.
    """

    name = ""
    points = 0.0
    entry = ""
    plan_entry = None
    crossing = "function"
    arguments = ()
    returns = {}
    measured = ()
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

    def timed_cases(self, seed=0):
        """Inputs for the timed rows, which only a CUDA device can judge: large, so made only where they are wanted."""
        return self.make_timed(np.random.default_rng([seed, zlib.crc32(f"{self.name} timed".encode())]))

    def make_timed(self, rng):
        return []

    def make_cases(self, rng):
        raise NotImplementedError

    def reference(self, inputs):
        raise NotImplementedError

    def tolerance(self, inputs, expected):
        return {}

    def bounds(self, inputs):
        return {}

    def expected(self, case):
        """(reference, tolerance) of a case, worked out once."""
        if "expected" not in case.memo:
            want = self.reference(case.inputs)
            case.memo["expected"] = want, self.tolerance(case.inputs, want)
        return case.memo["expected"]

    def is_timed(self, case):
        """Whether this case belongs to a timed row."""
        return bool(case.item) and self.item(case.item).kind == "time"

    def counts_of(self, case):
        """The counters that the row of this case adds up; none but for a structure row."""
        if not case.item or self.item(case.item).kind != "structure":
            return ()
        return tuple(self.bounds(case.inputs)[case.item].counter.split(" + "))

    def item(self, key):
        """The rubric row with this key."""
        return next(item for item in self.items if item.key == key)

    def hints(self, key):
        """Hints for one row of the rubric, from where to look to nearly the answer."""
        problem_set, _, name = self.name.partition("/")
        return tuple(_hints(problem_set).get(name, {}).get(key, ()))

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
                    line = replace(line, reason=f"stopped by the same error as {first.title!r}", hints=())
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
                    "not timed: there is no CUDA device here, or its clock did not hold still; no points are lost",
                )
        share, told, access, helps = 1.0, {}, {}, True
        for case in mine:
            fraction, text, blamed, counted = self._judge_case(item, case, found.get(case.name))
            helps = helps and counted
            access = blamed if fraction < share else access
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
            self.hints(item.key) if helps and state != "full" else (),
            counters,
            access,
        )

    def _judge_case(self, item, case, outcome):
        """(share of the row's points, why, the line that costs most, whether the row's hints help) for one case."""
        wrong = self.wrong_result(case, outcome)
        if item.kind == "correctness":
            return (0.0, wrong, {}, True) if wrong else (1.0, "", {}, True)
        if wrong:  # and how to save sectors is no help with that
            return 0.0, f"only counted for a right result: {wrong}", {}, False
        bound = self.bounds(case.inputs)[item.key]
        total, unit = bound.total(_finite(outcome.counters)), bound.unit or bound.counter
        limits = f"full points up to {number(bound.full)}, none from {number(bound.zero)}"
        blamed = outcome.access | {"of": total, "unit": unit} if outcome.access and math.isfinite(total) else {}
        return bound.fraction(total), f"{number(total) if math.isfinite(total) else 'no'} {unit}; {limits}", blamed, True

    def wrong_result(self, case, outcome):
        """Why this outcome is not a right result, in one sentence; None when it is right."""
        if outcome is None:
            return "no result came back"
        if outcome.error:
            return outcome.error
        if outcome.modified:
            return f"input `{outcome.modified[0]}` was changed; it must stay as it was"
        expected, tolerance = self.expected(case)
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


COPY = ("torch.clone", "moved")
"""The yardstick of a kernel that memory limits: a device copy that reads and writes, together, the bytes that the task must move.
The ratio to it is one over the share of the measured roofline."""


class KernelTask(Task):
    """A task whose submission is a @cuda.jit kernel or a warplab.cuda_kernel that fills output arrays.

    result(inputs) -> {output: (shape, dtype)}    the arrays that it must fill
                                                  (one that is in Case.inputs, too, starts with that value; others are poisoned)
    plan(inputs) -> (grid, block[, shared])       the launch, unless `plan_entry` names the student's own plan function
    plan_arguments(inputs) -> {name: int}         keyword arguments of that function: the shapes

    For a row of kind "time", whose Bound counts "time.ratio_low" (the student's time over the yardstick's, at the end of its
    confidence interval that is better for the student):
    make_timed(rng) -> [Case]                     its cases, large enough to fill a GPU
    yardstick                                     what it is compared with: ("torch.matmul", "a", "b"), a function and inputs; or COPY
    must_read(inputs) -> int                      bytes that have to come from memory; default: all input arrays
    must_write(inputs) -> int                     bytes that have to go there; default: all output arrays
    """

    crossing = "kernel"
    yardstick = ()

    def result(self, inputs):
        raise NotImplementedError

    def plan(self, inputs):
        raise NotImplementedError

    def plan_arguments(self, inputs):
        return {}

    def must_read(self, inputs):
        return sum(inputs[name].nbytes for name in self.arguments if type(inputs.get(name)) is np.ndarray)

    def must_write(self, inputs):
        return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in self.result(inputs).values())

    def yardstick_sets(self, sets):
        """The yardstick's own inputs, for each of several timed cases' inputs; a copy needs one set, whose contents do not matter."""
        if self.yardstick == COPY:
            return [{"moved": np.zeros((self.must_read(sets[0]) + self.must_write(sets[0])) // 2, np.uint8)}]
        return [{name: inputs[name] for name in self.yardstick[1:]} for inputs in sets]

    def untouched(self, name, inputs):
        return inputs[name] if name in inputs else crossing.poisoned(*self.result(inputs)[name])

    def kind_of(self, name, inputs):
        return np.dtype(self.result(inputs)[name][1]).name


class DriverTask(KernelTask):
    """A task whose submission is host code: entry(device, ...) allocates with device.empty and launches with device.launch.

    Arrays arrive as handles without values, numbers as they are. Counters are the sums over all launches, with "launches"
    and "allocated_bytes". Needs result(inputs), as a kernel does, and no plan.
    """

    crossing = "driver"


class VjpTask(Task):
    """A task whose submission maps tensors to one tensor `y` that autograd can go back from.

    differentiable: arguments whose gradients are compared, as results "grad_<name>". Case.inputs also holds "grad_out".
    forward(inputs) -> float64 array     y; the judge differentiates it by finite differences, so keep cases below 4,096 numbers
    rounding(inputs) -> {result: array}  how far an honest y and gradients in `dtype` may lie from exact ones
    """

    crossing = "vjp"
    differentiable = ()
    dtype = "float32"
    measured = ("saved_bytes",)

    def forward(self, inputs):
        raise NotImplementedError

    def rounding(self, inputs):
        raise NotImplementedError

    def gradients(self, inputs):
        """{"grad_<name>": (gradient, error bound)} of sum(forward * grad_out)."""
        return {
            f"grad_{name}": gradient_check(lambda value, name=name: self.forward(inputs | {name: value}), inputs[name], inputs["grad_out"])
            for name in self.differentiable
        }

    def reference(self, inputs):
        return {"y": self.forward(inputs)} | {name: gradient for name, (gradient, _) in self.gradients(inputs).items()}

    def tolerance(self, inputs, expected):
        errors = {name: error for name, (_, error) in self.gradients(inputs).items()}
        return {name: limit + errors.get(name, 0.0) for name, limit in self.rounding(inputs).items()}

    def kind_of(self, name, inputs):
        return self.dtype


class RanksTask(Task):
    """A task whose submission runs as several ranks at once, each with torch.distributed's default group open; arrays arrive as tensors.

    sharded: arguments of which rank r gets item r of the list in Case.inputs; the others are the same for all.
    rule: why the submission may not call collectives, as a clause ("this task is to write ..."); barriers stay open
    world(inputs) -> int                                       the number of ranks
    reference_of(rank, inputs) -> {result: array}              what rank `rank` must return
    tolerance_of(rank, inputs, expected) -> {result: limit}    default: exact
    Counters: "ranks.bytes" in all, "ranks.bytes_of_one" (the rank that sends most), "ranks.messages", "ranks.collectives". A collective
    counts as the ring that would do it (warplab.crossing.router).
    """

    crossing = "ranks"
    sharded = ()
    rule = ""

    def world(self, inputs):
        raise NotImplementedError

    def reference_of(self, rank, inputs):
        raise NotImplementedError

    def tolerance_of(self, rank, inputs, expected):
        return {}

    def reference(self, inputs):
        ranks = range(self.world(inputs))
        return {result_name(name, rank): value for rank in ranks for name, value in self.reference_of(rank, inputs).items()}

    def tolerance(self, inputs, expected):
        limits = {}
        for rank in range(self.world(inputs)):
            own = {name: expected[result_name(name, rank)] for name in self.returns}
            limits |= {result_name(name, rank): limit for name, limit in self.tolerance_of(rank, inputs, own).items()}
        return limits

    def kind_of(self, name, inputs):
        return self.returns[name.partition("[")[0]]


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
        if any(item.kind == "time" for item in cls.items) and not (cls.crossing in crossing.EXECUTED and cls.yardstick):
            raise ValueError(f"{name}: a timed row needs a kernel or a driver, and a yardstick to compare it with")
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


def run(task, case, entry, plan=None):
    """Run a submission on one case in this process and return an Outcome.

    Whatever the student's objects do, it does not raise (Ctrl-C excepted).
    """
    if task.is_timed(case) and not can_time():
        return Outcome(case.name)
    try:
        return outcome_of(case, crossing.run_here(task, case, entry, plan))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a student's SystemExit is a mistake, not an order to this program
        return Outcome(case.name, error=crossing.explain(error))


def outcome_of(case, result):
    """The Outcome of a crossing.Result."""
    return Outcome(case.name, result.outputs, result.counters, result.error, tuple(result.modified), result.access)


@functools.cache
def _hints(problem_set):
    """{task: {key of a row: [hints]}}, from the file beside the set's tasks."""
    path = Path(__file__).with_name("tasks") / f"{problem_set}_hints.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}


def can_time():
    """Whether this machine has a CUDA device, which timed rows need."""
    return device().kind == "cuda"


def _finite(counters):
    """Counters that are real, finite numbers; anything else is dropped."""
    return {str(key): float(value) for key, value in dict(counters).items() if type(value) in (int, float) and abs(value) < 1e300}
