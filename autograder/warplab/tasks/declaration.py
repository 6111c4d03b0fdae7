"""The base classes of graded tasks.

    task.cases(seed)                  -> [Case]     inputs only, fresh and random
    the crossing (warplab.crossing)   -> Outcome    the student's code and, for kernels, the executor
    scoring.judge(task, ...)          -> Report     compares, counts, gives points

Cases and outcomes hold JSON values and plain arrays. In a student's notebook all three steps run in one
process (warplab.tasks.feedback); when a submission is graded the middle one runs in processes that know no
task, no expected value and no score.
"""

import importlib.util
import math
import zlib
from dataclasses import replace

import numpy as np

from warplab.crossing import CROSSINGS, EXECUTED
from warplab.crossing.arrays import NotPlain, as_array
from warplab.crossing.endless import MOST_S
from warplab.crossing.ranks import result_name
from warplab.crossing.values import poisoned
from warplab.tasks.compare import difference, gradient_check
from warplab.tasks.domain import PLAIN, places
from warplab.tasks.rubric import KINDS, in_rubric, number

DECLARED = {}
"""{name: task} of all tasks whose modules have been imported."""
COUNTED = (*EXECUTED, "device", "ranks")
"""Crossings whose counters come from the executor, or from the judge's own device or router."""
HANDED_OVER = 0.2
"""The largest share of a task's points for counters of other crossings. There only data handed over is
counted, such as what forward saves for backward; the work itself happens in the student's own processes.
"""


class Task:
    """The base of every task. A subclass first declares data (entry, crossing, arguments, items), then code.

    Set by @task: name, points. Set by the subclass:
    entry        name of the submission in the student's namespace
    crossing     a key of warplab.crossing.CROSSINGS
    arguments    names, in order, that the submission receives: keys of Case.inputs (no other input leaves the
                 judge), for kernels and drivers also of result(), and "device" where the crossing has one
    returns      function, device, ranks: {result: kind (see warplab.crossing.arrays.as_array)}
    atomics      whether the work needs atomics. If not, a structure row that counts traffic of a memory loses
                 its points for atomics on that memory, and one that counts instructions for any atomics,
                 since plain loads and stores would do
    mbarriers    whether its kernels may use mbarriers. Structure rows of other tasks refuse them, since
                 threads could pass on data by them that no counter sees
    maps         {argument: (input, box, swizzle)}: arguments that are tensor maps of input arrays
    keeps        the share of points kept in spite of a finding of the engine, when results are right: by kind
                 "race" (in global memory; in shared memory it stops the kernel) or "other" (threads that skip
                 a barrier, an exchange with a missing lane) for the row concerned; and "task", the largest
                 share of the whole task, without timed rows, after any of these findings, or after a stop for
                 a race or an uninitialised value. A task with other shares says why in `not_as_usual`
    needs        a package that the submission needs and that some machines cannot have: "triton". Where the
                 judge lacks it, the rows are ungraded
    most_s       seconds of computing after which a case is stopped: at least four times the time of the
                 slowest right answer in the corpus
    items        the rubric
    domain       {axis: Whole, Values or Choice}: the inputs that are allowed (warplab.tasks.domain). Each
                 check draws `corners` cases from it; a task without a domain says why in `no_domain`
    make_cases(rng) -> [Case]                            cases that the rows need, none of them timed
    fits(place) -> bool                                  whether a place of the domain is small enough
    at(rng, place) -> Case                               the case at a place, with the row that it belongs to
    reference(inputs) -> {result: float64 or integer array}
    device(inputs) -> VirtualDevice                      device: the judge's device for one case
    tolerance(inputs, expected) -> {result: tolerance}   default: exact
    bounds(inputs) -> {item key: Bound}                  structure items
    Kernels, drivers, vjp and ranks have base classes below, with further members.
    """

    name = ""
    points = 0.0
    entry = ""
    plan_entry = None
    crossing = "function"
    arguments = ()
    returns = {}
    atomics = False
    mbarriers = False
    maps = {}
    keeps = {"race": 0.0, "other": 0.5, "task": 0.75}
    not_as_usual = ""
    needs = ""
    most_s = MOST_S
    items = ()
    domain = {}
    no_domain = ""
    corners = 5

    def cases(self, seed=0):
        """The cases of all rows but timed ones. The same seed (any int >= 0) gives the same cases."""
        cases, names = [], set()
        for case in self.make_cases(self._rng(seed)) + self.corner_cases(self._rng(seed, " corners")):
            if case.name in names:  # two random sizes may be equal
                case = replace(case, name=f"{case.name} ({len(names)})")
            names.add(case.name)
            cases.append(case)
        return cases

    def timed_cases(self, seed=0):
        """The cases of the timed rows: large inputs, made only on machines with a CUDA device."""
        return self.make_timed(self._rng(seed, " timed"))

    def _rng(self, seed, what=""):
        return np.random.default_rng([seed, zlib.crc32(f"{self.name}{what}".encode())])

    def corner_cases(self, rng):
        """Cases at `corners` places of the domain."""
        cases = []
        for place in places(rng, self.domain, self.corners, self.fits) if self.domain else ():
            case = self.at(rng, place)
            kinds = [kind for kind in place.values() if isinstance(kind, str)]
            kinds = [kind for kind in kinds if kind != PLAIN and kind not in case.name]
            cases.append(replace(case, name=", ".join([case.name, *kinds])))
        return cases

    def fits(self, place):
        return True

    def at(self, rng, place):
        raise NotImplementedError

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
        """(reference, tolerance) of a case, computed once and cached in the case."""
        if "expected" not in case.memo:
            want = self.reference(case.inputs)
            case.memo["expected"] = want, self.tolerance(case.inputs, want)
        return case.memo["expected"]

    def bounds_of(self, case):
        """bounds() of a case's inputs, computed once and cached in the case."""
        if "bounds" not in case.memo:
            case.memo["bounds"] = self.bounds(case.inputs)
        return case.memo["bounds"]

    def is_judged_here(self):
        """Whether this machine has the package in `needs`."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    def is_timed(self, case):
        """Whether this case belongs to a timed row."""
        return bool(case.item) and self.item(case.item).kind == "time"

    def counts_of(self, case):
        """The counters that the row of this case adds up; () unless it is a structure row."""
        if not case.item or self.item(case.item).kind != "structure":
            return ()
        return tuple(self.bounds_of(case)[case.item].counter.split(" + "))

    def item(self, key):
        """The rubric row with this key."""
        return next(item for item in self.items if item.key == key)

    def points_for(self, rubric=None):
        """The points of one grade cell: rubric "time" for the timed rows, None for all others."""
        return float(sum(item.points for item in self.items if in_rubric(item.kind, rubric)))

    def wrong_result(self, case, outcome):
        """Why an outcome's result is wrong, in one sentence; None when it is right."""
        if outcome is None:
            return "no result came back"
        if outcome.error:
            return outcome.error
        if outcome.modified:
            return f"input `{outcome.modified[0]}` was changed; it must stay as it was"
        _, tolerance = self.expected(case)
        for name, want in self.compared(case).items():
            if name not in outcome.outputs:
                return f"`{name}` did not come back"
            try:
                got = as_array(outcome.outputs[name], self.kind_of(name, case.inputs))
            except NotPlain as problem:
                return f"`{name}`: {problem}"
            before = self.untouched(name, case.inputs)
            wrong = difference(name, got, want, tolerance.get(name, 0.0), before, outcome.launch)
            if wrong:
                return wrong
            if name in outcome.held and difference(name, outcome.held[name], want, tolerance.get(name, 0.0)):
                return f"the device's own `{name}` is another one: what is returned was computed elsewhere"
        return None

    def compared(self, case):
        """{result: expected array} of the results that the row of this case compares."""
        expected, _ = self.expected(case)
        return {
            name: np.asarray(want) for name, want in expected.items() if not case.only or name in case.only
        }

    def needless_atomics(self, bound, counters):
        """Why atomics lose this structure row, in one sentence; None where they are allowed or absent.

        One atomic instruction serialises the lanes of a warp, which a count of instructions does not show.
        """
        for space in () if self.atomics else ("global", "shared"):
            requests = counters.get(f"{space}_atomic.requests", 0)
            if requests and (f"{space}_" in bound.counter or "instructions" in bound.counter):
                counted = "instructions" in bound.counter
                turns, plain = "lanes take turns within one", "read it with loads and write it with stores"
                told = f"{number(requests)} requests of atomics to {space} memory, and this task needs none"
                return f"{told}: {turns if counted else plain}"
        return None

    def unshared(self, inputs, counters, launch=()):
        """Why a structure row is lost because few warps do all the work, in one sentence; else None.

        launch: (grid, block) of the student's own plan.
        """
        return None

    def untouched(self, name, inputs):
        """The contents of result `name` before the submission runs; None except for kernels."""
        return None

    def instead(self, submission):
        """What a notebook shows instead of checking; None (check it) except for warm-ups."""
        return None

    def beside(self, report, submission):
        """What a notebook shows above the table of a check; None for nothing."""
        return None

    def kind_of(self, name, inputs):
        """The kind (warplab.crossing.arrays) of result `name`."""
        return self.returns[name]


COPY = ("torch.clone", "moved")
"""The yardstick of a memory-bound kernel: a device copy that moves as many bytes as the task must (reads plus
writes). One over the ratio to it is the share of the measured bandwidth."""


class KernelTask(Task):
    """A task whose submission is a @cuda.jit kernel or a warplab.cuda_kernel that fills output arrays.

    result(inputs) -> {output: (shape, dtype)}   the arrays that it must fill; one that is in Case.inputs
                                                 starts with that value, the others are poisoned
    plan(inputs) -> (grid, block[, shared])      the launch, unless `plan_entry` names the student's
    plan_arguments(inputs) -> {name: int}        keyword arguments of that function: the shapes

    For a row of kind "time", whose Bound counts "time.ratio_low" (the student's time over the yardstick's,
    at the end of its confidence interval that is better for the student):
    make_timed(rng) -> [Case]                    its cases, large enough to fill a GPU
    yardstick                                    what it is compared with: a function and its inputs,
                                                 such as ("torch.matmul", "a", "b"), or COPY;
                                                 {row: such a one} where a task has several timed rows
    must_read(inputs) -> int                     bytes that have to come from memory; default: input arrays
    must_write(inputs) -> int                    bytes that have to go there; default: output arrays
    """

    crossing = "kernel"
    yardstick = ()
    # The most instructions of the busiest warp, relative to the average warp's. No right answer
    # in the corpus has more than 2; if one block does the work of all, the ratio is the number of blocks.
    UNEVEN = 3.0

    def result(self, inputs):
        raise NotImplementedError

    def plan(self, inputs):
        raise NotImplementedError

    def plan_arguments(self, inputs):
        return {}

    def unshared(self, inputs, counters, launch=()):
        """Why the row is lost: a few warps of the launch do most of the work. None if they do not."""
        total, busiest = (counters.get(name) for name in ("warp_instructions", "busiest_warp_instructions"))
        plan = launch if self.plan_entry else self.plan(inputs)
        if not plan or not total or not busiest:
            return None
        blocks, threads = (math.prod(np.atleast_1d(size).tolist()) for size in plan[:2])
        warps = blocks * -(-threads // 32)
        if busiest * warps <= self.UNEVEN * total:
            return None
        return (
            f"the busiest of {number(warps)} warps issues {number(busiest)} of {number(total)} instructions, "
            f"{busiest * warps / total:.1f} times its share: divide the work among all blocks and warps"
        )

    def must_read(self, inputs):
        return sum(inputs[name].nbytes for name in self.arguments if type(inputs.get(name)) is np.ndarray)

    def must_write(self, inputs):
        return sum(
            math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in self.result(inputs).values()
        )

    def yardstick_of(self, case):
        """The yardstick of a timed case."""
        return self.yardstick[case.item] if type(self.yardstick) is dict else self.yardstick

    def yardstick_sets(self, yardstick, sets):
        """The yardstick's inputs for each of several timed cases; for COPY one set with any contents."""
        if yardstick == COPY:
            return [{"moved": np.zeros((self.must_read(sets[0]) + self.must_write(sets[0])) // 2, np.uint8)}]
        return [{name: inputs[name] for name in yardstick[1:]} for inputs in sets]

    def untouched(self, name, inputs):
        return inputs[name] if name in inputs else poisoned(*self.result(inputs)[name])

    def kind_of(self, name, inputs):
        return np.dtype(self.result(inputs)[name][1]).name


class DriverTask(KernelTask):
    """A task whose submission is host code: entry(device, ...) calls device.empty and device.launch.

    Arrays arrive as handles without values, numbers as they are. Counters are the sums over all launches,
    with "launches" and "allocated_bytes". Needs result(inputs), as a kernel does, and no plan.

    SHARE: in a structure row, the busiest warps of the launches may issue at most this share of all
    instructions.
    """

    crossing = "driver"
    most_s = 40  # compiling Triton kernels for each shape takes 3 to 8
    SHARE = 1.0

    def unshared(self, inputs, counters, launch=()):
        """Why the row is lost: the busiest warps do more than SHARE of the work. None if they do not."""
        total, busiest = (counters.get(name) for name in ("warp_instructions", "busiest_warp_instructions"))
        if not total or not busiest or busiest <= self.SHARE * total:
            return None
        return (
            f"the busiest warps issue {number(busiest)} of {number(total)} instructions: divide the work "
            "among many blocks and warps"
        )


class VjpTask(Task):
    """A task whose submission is a torch.autograd.Function that maps tensors to one tensor `y`.

    Counters: "saved_bytes", of distinct arrays that forward saves for backward, and "made_bytes", of those
    that are not inputs. Forward and backward run in separate processes, so that nothing else is kept.
    differentiable: arguments whose gradients are compared, as results "grad_<name>". Case.inputs also holds
    "grad_out".
    forward(inputs) -> float64 array     y; the judge differentiates it by finite differences, so keep cases
                                         below 4,096 numbers
    rounding(inputs) -> {result: array}  bounds of the rounding errors of y and gradients computed in `dtype`
    """

    crossing = "vjp"
    differentiable = ()
    dtype = "float32"

    def forward(self, inputs):
        raise NotImplementedError

    def rounding(self, inputs):
        raise NotImplementedError

    def gradients(self, inputs):
        """{"grad_<name>": (gradient, error bound)} of sum(forward * grad_out)."""
        return {
            f"grad_{name}": gradient_check(
                lambda value, name=name: self.forward(inputs | {name: value}),
                inputs[name],
                inputs["grad_out"],
            )
            for name in self.differentiable
        }

    def reference(self, inputs):
        return {"y": self.forward(inputs)} | {
            name: gradient for name, (gradient, _) in self.gradients(inputs).items()
        }

    def tolerance(self, inputs, expected):
        errors = {name: error for name, (_, error) in self.gradients(inputs).items()}
        return {name: limit + errors.get(name, 0.0) for name, limit in self.rounding(inputs).items()}

    def kind_of(self, name, inputs):
        return self.dtype


class RanksTask(Task):
    """A task whose submission runs as several ranks, each with torch.distributed's default group open.

    Arrays arrive as tensors.
    sharded: arguments of which rank r gets item r of the list in Case.inputs; others are the same for all
    rule: why the submission may not call collectives other than barriers, as a clause ("this task is to
    write ..."); "" where it may
    world(inputs) -> int                                       the number of ranks
    reference_of(rank, inputs) -> {result: array}              what rank `rank` must return
    tolerance_of(rank, inputs, expected) -> {result: limit}    default: exact
    Counters: "ranks.bytes" in all, "ranks.bytes_of_one" (the rank that sends most), "ranks.messages",
    "ranks.collectives". A collective counts like a ring algorithm (warplab.crossing.router.ring_traffic).
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
        return {
            result_name(name, rank): value
            for rank in ranks
            for name, value in self.reference_of(rank, inputs).items()
        }

    def tolerance(self, inputs, expected):
        limits = {}
        for rank in range(self.world(inputs)):
            own = {name: expected[result_name(name, rank)] for name in self.returns}
            limits |= {
                result_name(name, rank): limit for name, limit in self.tolerance_of(rank, inputs, own).items()
            }
        return limits

    def kind_of(self, name, inputs):
        return self.returns[name.partition("[")[0]]


def task(name, points):
    """Class decorator: register one instance under `name`, for example "ps04/matmul_tiled"."""

    def register(cls):
        cls.name, cls.points = name, float(points)
        total = math.fsum(item.points for item in cls.items)
        if total != cls.points:
            raise ValueError(f"{name}: its items add up to {total:g} points, expected {points:g}")
        if any(item.kind not in KINDS for item in cls.items) or cls.crossing not in CROSSINGS:
            raise ValueError(f"{name}: unknown kind of item or crossing")
        counted = math.fsum(item.points for item in cls.items if item.kind == "structure")
        if cls.crossing not in COUNTED and counted > HANDED_OVER * total:
            raise ValueError(
                f"{name}: rows that count what the student's process alone can see weigh {counted:g} of "
                f"{total:g} points, and may weigh {HANDED_OVER:.0%}"
            )
        if cls.keeps != Task.keeps and not cls.not_as_usual:
            raise ValueError(f"{name}: say in not_as_usual why a row keeps other shares here")
        if any(item.kind == "time" for item in cls.items) and not (
            cls.crossing in EXECUTED and cls.yardstick
        ):
            raise ValueError(
                f"{name}: a timed row needs a kernel or a driver, and a yardstick to compare it with"
            )
        DECLARED[name] = cls()
        return cls

    return register
