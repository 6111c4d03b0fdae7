"""Problem set 14, audits: kernels written by language models, each with a verdict and a witness.

A submission returns a witness: input arrays for the kernel. On the engine with its sanitizer the judge runs
the shown kernel on it, kernels with similar mistakes and right ones (warplab.tasks.machine_made), and
compares their results with float64.
"""

import functools
import threading
from dataclasses import replace

import numpy as np

from warplab.crossing.arrays import NotPlain, as_array
from warplab.crossing.execute import execute
from warplab.crossing.kernel import compiled
from warplab.crossing.orders import CopyStep, Empty, LaunchStep, Order
from warplab.hardware.device import engine_target
from warplab.simt.frontends.cuda_cpp import cuda_kernel
from warplab.tasks import machine_made
from warplab.tasks.compare import difference, sum_tolerance
from warplab.tasks.declaration import Task, task
from warplab.tasks.domain import Choice
from warplab.tasks.rubric import Case, Item
from warplab.tasks.scoring import ONLY_RIGHT

RIGHT, SLOWER, SIZES, BOUNDS, RACE, SKIPS, REMEMBERS, PRECISION = range(8)
"""The verdicts, with the same numbers as in the notebook."""

ROWS = (
    Item("given", 3, title="Your witness breaks the kernel above"),
    Item("others", 5, title="It breaks other kernels that are wrong in a similar way"),
    Item("spares", 1, title="It spares right kernels"),
    Item("verdict", 2, title="The verdict"),
    Item("worst", 5, title="The worst case"),
)
"""The rows of an audit. An odd size breaks the shown kernel, and a verdict can be guessed: few points."""

_one_at_a_time = threading.Lock()  # submissions are graded in threads; the engine has one device memory


@functools.cache
def compiled_version(version, ndims):
    """The compiled Kernel of a shown kernel's name or of a Version. ndims: each array's number of axes."""
    if type(version) is str:
        types = [["float32", ndim, "array"] for ndim in ndims]
        return compiled(getattr(machine_made, version), version, types, engine_target())
    return compiled(cuda_kernel(version.source, "k"), "k", [], engine_target())


class Audit(Task):
    """A task on one kernel: its verdict, its worst case, and a witness that breaks it.

    shown        the kernel's name in machine_made; `truth` is its verdict
    wrong, right other kernels for the same job, machine_made.Versions
    must_break   the wrong Version that every row requires the witness to break; None: the shown kernel
    witness      names of the arrays that the submission returns, in order
    grid         (size, threads) -> blocks of the shown kernel; 0: the case's `blocks`, or 4
    limits(inputs) -> {array: [(least, most), ...]}: the sizes allowed, one interval per axis
    magnitude    the largest absolute value allowed in a witness
    buffers(witness) -> {name: array or Empty}: the kernel's arguments, in order; "out" is the result
    job(witness) -> (float64 array, tolerance): the reference of "out"
    worst_of(inputs) -> int: the expected "worst", for tasks that return it
    """

    arguments = ("threads",)
    shown = ""
    truth = RIGHT
    returns = {"verdict": "integers", "worst": "integers", "x": "float32"}
    items = ROWS
    wrong: tuple[machine_made.Version, ...] = ()
    right: tuple[machine_made.Version, ...] = ()
    must_break = None
    witness = ("x",)
    magnitude = 1000.0
    sizes = (64, 128, 256)
    grid = staticmethod(machine_made.each)
    domain = {"threads": Choice(64, 128, 256)}
    corners = 2
    axis = "threads"

    def limits(self, inputs):
        raise NotImplementedError

    def model(self, inputs):
        """A witness that is right: {name: array}."""
        raise NotImplementedError

    def worst_of(self, inputs):
        raise NotImplementedError

    def buffers(self, witness):
        return witness | {"out": Empty(witness["x"].shape, "float32")}

    def job(self, witness):
        raise NotImplementedError

    def make_cases(self, rng):
        """Rows of three or more cases have one with every size, rows of two the smallest and the largest."""
        cases = []
        for item in self.items:
            versions = {"others": self.wrong, "spares": self.right, "given": self.sizes}.get(item.key, "--")
            sizes = self.sizes if len(versions) > 2 else self.sizes[::2]
            drawn = rng.permutation([*sizes, *rng.choice(self.sizes, len(versions) - len(sizes))])
            for number, size in enumerate(drawn.tolist()):
                cases.append(self.case(item.key, {self.axis: size}, number))
        return cases

    def case(self, item, place, number=0):
        settings = ", ".join(f"{value} {name}" for name, value in place.items())
        inputs = {"threads": 64} | place | {"kernel": number}
        which = f", kernel {number + 1}" if item in ("others", "spares") else ""
        return Case(f"{item}, {settings}{which}", inputs, item)

    def at(self, rng, place):
        case = self.case("verdict", place)
        return replace(case, name=f"{case.name} again")

    def reference(self, inputs):
        arrays = {name: np.asarray(array, np.float32) for name, array in self.model(inputs).items()}
        verdict = {"verdict": np.array(self.truth)}
        worst = {"worst": np.array(self.worst_of(inputs))} if "worst" in self.returns else {}
        return verdict | worst | arrays

    def wrong_result(self, case, outcome):
        """Why the row of this case is lost, in one sentence; None if it is not."""
        if outcome is None or outcome.error or outcome.modified:
            return super().wrong_result(case, outcome)
        answers = {}
        for name, kind in self.returns.items():
            if name not in outcome.outputs:
                return f"`{name}` did not come back"
            try:
                answers[name] = as_array(outcome.outputs[name], kind)
            except NotPlain as problem:
                return f"`{name}`: {problem}"
        witness = {name: answers[name] for name in self.witness}
        needed = self.unfit(case.inputs, witness) or self.unbroken(case.inputs, witness)
        if needed and case.item != self.items[0].key:  # the first row gives this reason
            return f"{ONLY_RIGHT}{needed}"
        return needed or self.unshown(case, answers, witness)

    def unfit(self, inputs, witness):
        """How a witness exceeds the limits in the job's statement, in one sentence; None if it does not."""
        for name, axes in self.limits(inputs).items():
            array = witness[name]
            if array.ndim != len(axes):
                return f"your witness: `{name}` has {array.ndim} axes, and the job's has {len(axes)}"
            for size, (least, most), what in zip(array.shape, axes, ("rows", "columns"), strict=False):
                what = what if len(axes) == 2 else "numbers"
                if not least <= size <= most:
                    return f"your witness: `{name}` has {size:,} {what}; the job allows {least:,} to {most:,}"
            beyond = np.argwhere(~(np.abs(array) <= self.magnitude)).tolist()
            if beyond:
                place, most = beyond[0], f"{self.magnitude:,.0f}"
                found = f"`{name}{place}` is {array[tuple(place)]:,.8g}"
                return f"your witness: {found}; the job allows -{most} to {most}"
        return None

    def unbroken(self, inputs, witness):
        """Why a witness gets no points in any row: the kernel that it must break passes; None if it fails."""
        first = self.shown if self.must_break is None else self.must_break
        return None if self.broken(first, inputs, witness) else self.survives(first)

    def unshown(self, case, answers, witness):
        """Why the row is lost although the witness meets the conditions of all rows; None if it is not."""
        inputs = case.inputs
        if case.item == "others":
            version = self.wrong[inputs["kernel"]]
            return None if self.broken(version, inputs, witness) else self.survives(version)
        if case.item == "spares":
            version = self.right[inputs["kernel"]]
            fault = self.broken(version, inputs, witness)
            return f"a right kernel, which {version.told}, fails on your witness: {fault}" if fault else None
        if case.item == "verdict" and answers["verdict"].tolist() != self.truth:
            return "your witness is good, and the verdict is another one"
        if case.item == "worst" and answers["worst"].tolist() != self.worst_of(inputs):
            return f"your witness is good, and the worst case is another one than {answers['worst'].tolist()}"
        return None

    def survives(self, version):
        name = "the kernel above" if type(version) is str else f"a wrong kernel, which {version.told},"
        return f"{name} comes through your witness: its numbers are right, and the sanitizer finds nothing"

    def broken(self, version, inputs, witness):
        """How a kernel fails on a witness, in one sentence; "" if it does not."""
        return self.failure(self.run(version, inputs, witness), witness)

    def failure(self, outcome, witness):
        if outcome.error:
            return outcome.error.partition("\n")[0]
        messages = [found["text"] for found in outcome.findings if found["text"]]
        if messages:
            return messages[0]
        want, tolerance = self.job(witness)
        return difference("out", outcome.outputs["out"], want, tolerance) or ""

    def run(self, version, inputs, witness):
        """The Outcome of a kernel on a witness, from the engine (cached)."""
        key = tuple((array.shape, array.tobytes()) for array in witness.values())
        return _outcome(type(self), version, inputs["threads"], inputs.get("blocks", 4), key)

    def order(self, version, threads, blocks, witness):
        buffers, size = self.buffers(witness), len(next(iter(witness.values())))
        ndims = tuple(
            buffer.ndim if type(buffer) is np.ndarray else len(buffer.shape) for buffer in buffers.values()
        )
        kernel = compiled_version(version, ndims)
        arguments = tuple(buffers)
        grid = (self if type(version) is str else version).grid(size, threads)
        if type(version) is not str:
            arguments += tuple(("int32", n) for n in buffers["x"].shape)
        launch = LaunchStep(0, (max(1, grid or blocks),), (threads,), 0, arguments)
        return Order(engine_target().arch, (kernel,), buffers, (launch,), ("out",))


@functools.lru_cache(maxsize=512)
def _outcome(audit, version, threads, blocks, key):
    witness = {
        name: np.frombuffer(data, np.float32).reshape(shape)
        for name, (shape, data) in zip(audit.witness, key, strict=True)
    }
    with _one_at_a_time:
        return execute(audit().order(version, threads, blocks, witness))


@task("ps14/row_sums", points=16)
class RowSums(Audit):
    """Row sums, four columns per step. One remaining column per thread is added: up to two are left out."""

    entry = "audit_row_sums"
    shown, truth = "row_sums", SIZES
    wrong, right = machine_made.WRONG_SUMS, machine_made.RIGHT_SUMS

    def limits(self, inputs):
        return {"x": [(1, 8), (1, 6 * inputs["threads"])]}

    def model(self, inputs):
        return {"x": np.ones((3, 3 * inputs["threads"] + 1))}

    def worst_of(self, inputs):
        return 2 * inputs["threads"]

    def buffers(self, witness):
        return witness | {"out": Empty((len(witness["x"]),), "float32")}

    def job(self, witness):
        x = witness["x"].astype(np.float64)
        return x.sum(axis=1), sum_tolerance(x.shape[1], np.abs(x).sum(axis=1))


@task("ps14/brighten", points=16)
class AuditOfBrighten(Audit):
    """The prefetch of a partly filled tile reads past the end of x; the results do not depend on it."""

    entry = "audit_brighten"
    shown, truth = "brighten", BOUNDS
    wrong, right = machine_made.WRONG_BRIGHT, machine_made.RIGHT_BRIGHT
    grid = staticmethod(machine_made.tiles(4))

    def limits(self, inputs):
        return {"x": [(1, 6 * inputs["threads"])]}

    def model(self, inputs):
        return {"x": np.linspace(0, 1, 3 * inputs["threads"] + 1)}

    def worst_of(self, inputs):
        return inputs["threads"] - 1

    def job(self, witness):
        want = np.minimum(1, 1.5 * witness["x"].astype(np.float64))
        return want, 2.0**-23 * np.abs(want)


@task("ps14/centre", points=16)
class Centre(Audit):
    """Rows minus their means. A block's next row overwrites the sum that other warps may still read."""

    entry = "audit_centre"
    arguments = ("blocks", "threads")
    shown, truth = "centre", RACE
    wrong, right = machine_made.WRONG_CENTRES, machine_made.RIGHT_CENTRES
    grid = staticmethod(machine_made.blocks)
    sizes, axis = (2, 4, 8), "blocks"
    domain = {"blocks": Choice(2, 4, 8, said=True), "threads": Choice(64, 128, 256)}

    def limits(self, inputs):
        return {"x": [(1, 4 * inputs["blocks"]), (1, 512)]}

    def model(self, inputs):
        count = inputs["blocks"] + 1
        return {"x": np.arange(40.0 * count).reshape(count, 40)}

    def worst_of(self, inputs):
        return 100 - inputs["blocks"]

    def job(self, witness):
        x = witness["x"].astype(np.float64)
        cols = x.shape[1]
        total = np.abs(x).sum(axis=1, keepdims=True)
        want = x - x.mean(axis=1, keepdims=True)
        return want, sum_tolerance(cols, total) / cols + 2.0**-22 * (np.abs(x) + total / cols)


@task("ps14/variance", points=15)
class Variance(Audit):
    """Welford's algorithm with Chan's merging is right; most of the wrong kernels lose digits."""

    entry = "audit_variance"
    returns = {"verdict": "integers", "x": "float32"}
    items = (
        Item("others", 9, title="Your witness breaks kernels that lose the variance"),
        Item("spares", 3, title="It spares right kernels"),
        Item("verdict", 3, title="The verdict"),
    )
    shown, truth = "variance", RIGHT
    wrong, right = machine_made.WRONG_VARIANCES, machine_made.RIGHT_VARIANCES
    must_break = machine_made.WRONG_VARIANCES[0]
    SPREAD = 2000

    def limits(self, inputs):
        return {"x": [(1, 8), (2, 4 * inputs["threads"])]}

    def unfit(self, inputs, witness):
        wrong = super().unfit(inputs, witness)
        if wrong:
            return wrong
        x = witness["x"].astype(np.float64)
        for row, (far, spread) in enumerate(zip(np.abs(x).max(axis=1), x.std(axis=1), strict=True)):
            if far > self.SPREAD * spread:
                told = f"row {row} of `x` goes up to {far:,.6g} with a standard deviation of {spread:.3g}"
                return f"your witness: {told}; the job allows {self.SPREAD:,} times that deviation"
        return None

    def model(self, inputs):
        """Means near 900 and -900, deviations near 0.5; the second half of a row is higher than the first."""
        row, col = np.ogrid[:8, : 2 * inputs["threads"]]
        means = (900 + row) * (-1.0) ** row
        return {"x": means + np.where(col < inputs["threads"], -0.5, 0.5) + 0.1 * np.sin(col * (row + 1))}

    def buffers(self, witness):
        return witness | {"out": Empty((len(witness["x"]),), "float32")}

    def unshown(self, case, answers, witness):
        fault = self.broken(self.shown, case.inputs, witness)
        return f"the kernel above fails: {fault}" if fault else super().unshown(case, answers, witness)

    def job(self, witness):
        want = witness["x"].astype(np.float64).var(axis=1)
        return want, 0.02 * want


@task("ps14/smooth", points=16)
class Smooth(Audit):
    """Right, but a warp's access touches four sectors for each number of a thread's chunk, up to 32."""

    entry = "audit_smooth"
    shown, truth = "smooth", SLOWER
    wrong, right = machine_made.SLOW_SMOOTH, machine_made.FAST_SMOOTH
    grid = staticmethod(machine_made.blocks)
    magnitude = 1.0
    FACTOR = 2

    def limits(self, inputs):
        return {"x": [(1, 30 * inputs["threads"])]}

    def model(self, inputs):
        return {"x": np.linspace(0, 1, 8 * inputs["threads"])}

    def worst_of(self, inputs):
        return 28 * inputs["threads"] + 1

    def job(self, witness):
        v = witness["x"].astype(np.float64)
        want = v * v * (3 - 2 * v)
        return want, 2.0**-20 * np.abs(v) * np.abs(v)

    def broken(self, version, inputs, witness):
        """As in Audit; a kernel with at least FACTOR times the sectors of the plain kernel also fails."""
        outcome, plain = (self.run(one, inputs, witness) for one in (version, machine_made.PLAIN_SMOOTH))
        fault = self.failure(outcome, witness)
        if fault:
            return fault
        mine, other = (
            one.counters["global_read.sectors"] + one.counters["global_write.sectors"]
            for one in (outcome, plain)
        )
        return f"{mine:,.0f} sectors, the plain kernel {other:,.0f}" if mine >= self.FACTOR * other else ""

    def survives(self, version):
        name = "the kernel above" if type(version) is str else f"a kernel that {version.told}"
        return f"{name} moves less than {self.FACTOR} times the sectors of the plain kernel on your witness"


@task("ps14/energy", points=16)
class Energy(Audit):
    """Squares, cached between calls by a fingerprint that is the same for many different tiles."""

    entry = "audit_energy"
    returns = {"verdict": "integers", "worst": "integers", "first": "float32", "second": "float32"}
    shown, truth = "energy", REMEMBERS
    wrong, right = machine_made.WRONG_ENERGIES, machine_made.RIGHT_ENERGIES
    grid = staticmethod(machine_made.tiles())
    witness = ("first", "second")

    def limits(self, inputs):
        count = (4 * inputs["threads"], 16 * inputs["threads"])
        return {"first": [count], "second": [count]}

    def unfit(self, inputs, witness):
        wrong = super().unfit(inputs, witness)
        if wrong or len(witness["first"]) == len(witness["second"]):
            return wrong
        return "your witness: `first` and `second` have different sizes, and one buffer takes both"

    def model(self, inputs):
        """Two elements of a tile are exchanged between the calls, which the fingerprint does not show."""
        first = np.arange(5 * inputs["threads"]) % 50 + 1
        second = first.copy()
        second[[40, 41]] = first[[41, 40]]
        return {"first": first, "second": second}

    def worst_of(self, inputs):
        return 4 * inputs["threads"]

    def buffers(self, witness):
        count = len(witness["first"])
        kept = np.full(count, np.nan, np.float32)
        return {"x": witness["first"], "out": Empty((count,), "float32"), "kept": kept}

    def order(self, version, threads, blocks, witness):
        """Two calls on the same buffer, with `second` copied into it in between."""
        order = super().order(version, threads, blocks, witness)
        out = order.buffers["out"]
        buffers = order.buffers | {"second": witness["second"], "before": out}
        (call,) = order.steps
        steps = (call, CopyStep("before", "out"), CopyStep("x", "second"), call)
        return replace(order, buffers=buffers, steps=steps, results=("before", "out"))

    def failure(self, outcome, witness):
        if "before" in outcome.outputs:
            both = np.concatenate([outcome.outputs[name] for name in ("before", "out")])
            outcome = replace(outcome, outputs={"out": both})
        return super().failure(outcome, witness)

    def job(self, witness):
        want = np.concatenate([witness[name].astype(np.float64) ** 2 for name in self.witness])
        return want, 2.0**-23 * want
