"""Problem set 13, train it: the kernels of a training step, forward and backward, with gradients checked by
finite differences; then whole training runs that use only the student's own kernels.

All tasks and runs share one layout: arrays are row-major float32, a batch is x (batch, inputs), a layer has
weights w (inputs, outputs) and a bias b (outputs,), so that y = x @ w + b. The gradient grad_<name> has the
shape of <name>, and the submission overwrites it, without adding to it. Labels and tokens are int32. A data
set is passed as a whole array with `first`, the row where the batch begins.
Host functions are called f(device, inputs ..., numbers ..., outputs ...).

    linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b)
    activation(device, x, grad_y, y, grad_x)
    layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift)
    cross_entropy(device, logits, labels, first, step, losses, grad_logits)
    adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v)
    train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses)
    attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v)
    embedding(device, tokens, first, table, grad_y, y, grad_table)
    train_text(device, tokens, length, sequences, steps, rate, beta1, beta2, eps, decay, the weights, losses)

Points: linear 16, activation 6, layer_norm 12, cross_entropy 10, adamw 9, train_mlp 20; starred: attention
10, embedding 5, train_text 7. Together 95; five more are for the question that a person grades.
"""

import functools
import math
from dataclasses import replace

import numpy as np

from warplab.models import training_runs
from warplab.models.drawn_digits import drawn_digits
from warplab.models.training_runs import TIMED, WEIGHTS, density, gelu, gelu_slope, mlp_run, mlp_start
from warplab.tasks.compare import gradient_check, sum_tolerance
from warplab.tasks.declaration import DriverTask, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many
from warplab.tasks.text_run import LETTERS, RHYME, TEXT_WEIGHTS, text_run, text_start, tokens_of

UNIT = 2.0**-24  # unit roundoff of float32
COUNTED_STEPS = 4  # steps of the runs whose launches and sectors are counted
TINY = 1e-37  # smaller numbers may be flushed to zero
DIFFERENTIATED = 160  # the largest size of an array that finite differences are used for


def normal(rng, *shape, size=1.0):
    return (size * rng.normal(size=tuple(map(int, shape)))).astype(np.float32)


def odd(rng, low, high):
    """A random odd number from 2 low + 1 to 2 high - 1."""
    return int(2 * rng.integers(low, high) + 1)


def exact(inputs, *names):
    """The named inputs in float64."""
    return tuple(inputs[name].astype(np.float64) for name in names)


def once(*arrays):
    """Sectors of contiguous arrays, each read or written once."""
    return sum(array.nbytes for array in arrays) / 32


class TrainingTask(DriverTask):
    """The base of tasks whose submission is host code for one part of a training step, forward and backward.

    through, differentiable: the gradients are those of sum(through * grad_through) by `differentiable`.
    forward(inputs) -> {result: float64 array}     the results that are not gradients
    backward(inputs) -> {result: float64 array}    the gradients, by the chain rule
    rounding(inputs, expected) -> {result: limit}  bounds of the rounding errors of a correct float32 kernel

    The gradient of an array of up to DIFFERENTIATED numbers is found by finite differences in float64, whose
    error bound is added to the tolerance; that of larger arrays, and of inputs with "far", by the chain rule.
    """

    SHARE = 1 / 4
    through = "y"
    differentiable = ()
    corners = 4

    def forward(self, inputs):
        raise NotImplementedError

    def backward(self, inputs):
        raise NotImplementedError

    def rounding(self, inputs, expected):
        raise NotImplementedError

    def part(self, inputs, name):
        """The part of the argument `name` that is differentiated."""
        return inputs[name]

    def with_part(self, inputs, name, value):
        """The inputs with `value` in place of part(inputs, name)."""
        return inputs | {name: value}

    def weight(self, inputs):
        """The upstream gradient, by which `through` is multiplied before it is summed."""
        return inputs[f"grad_{self.through}"]

    def checked(self, inputs):
        """{gradient: (its value by finite differences, error bound)} of the arrays that are small enough."""
        return {
            f"grad_{name}": gradient_check(
                lambda value, name=name: self.forward(self.with_part(inputs, name, value))[self.through],
                self.part(inputs, name),
                self.weight(inputs),
            )
            for name in self.differentiable
            if self.part(inputs, name).size <= DIFFERENTIATED and not inputs.get("far")
        }

    def expected(self, case):
        """As in Task; reference and tolerance share one computation of the finite differences."""
        if "expected" not in case.memo:
            found = self.checked(case.inputs)
            want = self.forward(case.inputs) | self.backward(case.inputs)
            limits = self.rounding(case.inputs, want)
            want |= {name: gradient for name, (gradient, _) in found.items()}
            limits |= {name: limits[name] + error for name, (_, error) in found.items()}
            case.memo["expected"] = want, limits
        return case.memo["expected"]

    def reference(self, inputs):
        return self.expected(Case("", inputs))[0]

    def tolerance(self, inputs, expected):
        return self.expected(Case("", inputs))[1]

    def result(self, inputs):
        return {name: (shape, "float32") for name, shape in self.shapes(inputs).items()}

    def shapes(self, inputs):
        """{result: shape}."""
        raise NotImplementedError


@task("ps13/linear", points=16)
class Linear(TrainingTask):
    """y = x[first : first + batch] @ w + b, and the gradients by these rows of x, by w and by b."""

    entry = "linear"
    arguments = ("device", "x", "first", "w", "b", "grad_y", "y", "grad_x", "grad_w", "grad_b")
    differentiable = ("x", "w", "b")
    atomics = True  # sums over the batch may use atomics
    SHARE = 1 / 8
    items = (
        Item("forward", 3, title="The layer forward, at any size"),
        Item("inputs", 3, title="The gradient by the batch"),
        Item("weights", 3, title="The gradient by the weights"),
        Item("bias", 2, title="The gradient by the bias"),
        Item("sectors", 5, "structure", "Each number is fetched about once a tile, in whole sectors"),
    )

    domain = {
        "batch": Whole(),
        "inputs": Whole(),
        "outputs": Whole(),
        "first": Whole(0, says=("x may have more rows than the batch",), upto=70),
        "asked": Choice("forward", "inputs", "weights", "bias"),
    }
    parts = {"forward": ("y",), "inputs": ("grad_x",), "weights": ("grad_w",), "bias": ("grad_b",)}

    def fits(self, place):
        return place["batch"] * place["inputs"] * place["outputs"] <= 40_000

    def at(self, rng, place):
        batch, inputs, outputs, first, asked = place.values()
        return self.layer(rng, asked, batch, inputs, outputs, first, self.parts[asked])

    @staticmethod
    def layer(rng, item, batch, inputs, outputs, first=0, only=()):
        rows = first + batch + (3 if first else 0)
        arrays = {
            "x": normal(rng, rows, inputs),
            "w": normal(rng, inputs, outputs),
            "b": normal(rng, outputs, size=4.0),
            "grad_y": normal(rng, batch, outputs),
            "first": int(first),
        }
        window = f", from row {first}" if first else ""
        return Case(f"{item}, batch {batch}, {inputs} to {outputs}{window}", arrays, item, only)

    def make_cases(self, rng):
        cases = []
        for item, only in self.parts.items():
            cases += [
                self.layer(rng, item, 1, 1, 1, only=only),
                self.layer(rng, item, odd(rng, 2, 5), 17, odd(rng, 2, 5), int(rng.integers(3, 9)), only),
                self.layer(rng, item, 17, 49, 33, only=only),
            ]
        return [*cases, self.layer(rng, "sectors", 48, 96, 64, 32)]

    def shapes(self, inputs):
        (batch, outputs), width = inputs["grad_y"].shape, inputs["x"].shape[1]
        return {
            "y": (batch, outputs),
            "grad_x": (batch, width),
            "grad_w": (width, outputs),
            "grad_b": (outputs,),
        }

    def part(self, inputs, name):
        first = inputs["first"]
        return inputs["x"][first : first + len(inputs["grad_y"])] if name == "x" else inputs[name]

    def with_part(self, inputs, name, value):
        return inputs | {name: value} | ({"first": 0} if name == "x" else {})

    def forward(self, inputs):
        batch = self.part(inputs, "x").astype(np.float64)
        return {"y": batch @ inputs["w"].astype(np.float64) + inputs["b"]}

    def backward(self, inputs):
        w, grad = exact(inputs, "w", "grad_y")
        batch = self.part(inputs, "x").astype(np.float64)
        return {"grad_x": grad @ w.T, "grad_w": batch.T @ grad, "grad_b": grad.sum(axis=0)}

    def rounding(self, inputs, expected):
        """y sums `inputs` products and the bias, grad_x `outputs` products, the others `batch` terms."""
        w, b, grad = (np.abs(array) for array in exact(inputs, "w", "b", "grad_y"))
        batch = np.abs(self.part(inputs, "x").astype(np.float64))
        (rows, outputs), width = grad.shape, len(w)
        return {
            "y": sum_tolerance(width + 1, batch @ w + b),
            "grad_x": sum_tolerance(outputs, grad @ w.T),
            "grad_w": sum_tolerance(rows, batch.T @ grad),
            "grad_b": sum_tolerance(rows, grad.sum(axis=0)),
        }

    def bounds(self, inputs):
        """Three products of n = batch x inputs x outputs multiply-adds. With tiles of 16 x 16 each reads
        2 n / 16 numbers, n / 64 sectors; the bias and its gradient add a little. A product without tiles
        reads n / 8 sectors or more; one of three makes 3.3 times the total. Loading two of the six tiles by
        columns, so that half a warp reads 16 sectors, takes four times as many for each: twice the total.
        """
        (batch, outputs), width = inputs["grad_y"].shape, inputs["x"].shape[1]
        fewest = 3 * batch * outputs * width / 64 + once(inputs["grad_y"]) + batch / 16 * outputs / 8
        return {"sectors": Bound("global_read.sectors", 1.15 * fewest, 1.9 * fewest, "sectors read")}


@task("ps13/activation", points=6)
class Activation(TrainingTask):
    """GELU, y = x P(x), and grad_x = grad_y (P(x) + x p(x)), with P the normal CDF and p its density.

    GELU and not ReLU: it is differentiable everywhere, so that finite differences are valid at every number.
    Both networks of the set use it.
    """

    entry = "activation"
    arguments = ("device", "x", "grad_y", "y", "grad_x")
    differentiable = ("x",)
    items = (
        Item("forward", 2, title="GELU, of any number of rows and columns"),
        Item("backward", 2, title="Its gradient"),
        Item("far", 1, title="Numbers far from zero"),
        Item("sectors", 1, "structure", "Nothing is read or written twice"),
    )

    domain = {
        "rows": Whole(upto=257),
        "columns": Whole(),
        "x": Values("float32", PLAIN, "signed zeros", "negative", "subnormal", "large", "largest"),
        "asked": Choice("forward", "backward"),
    }

    def fits(self, place):
        return place["rows"] * place["columns"] <= 4200

    def at(self, rng, place):
        rows, cols, kind, asked = place.values()
        x = self.domain["x"].draw(rng, kind, (rows, cols))
        if kind.startswith("large"):
            return self.numbers(rng, "far", rows, cols, x)
        return self.numbers(rng, asked, rows, cols, x, ("y",) if asked == "forward" else ("grad_x",))

    @staticmethod
    def numbers(rng, item, rows, cols, x=None, only=()):
        x = normal(rng, rows, cols, size=2.0) if x is None else x.astype(np.float32).reshape(rows, cols)
        inputs = {"x": x, "grad_y": normal(rng, rows, cols), "far": int(item == "far")}
        return Case(f"{item}, {rows} x {cols}", inputs, item, only)

    def make_cases(self, rng):
        numbers = functools.partial(self.numbers, rng)
        far = np.concatenate([10.0 ** rng.uniform(1, 25, 20), rng.uniform(5, 40, 19), [0.0]])
        return [
            numbers("forward", 1, 1, only=("y",)),
            numbers("forward", 5, odd(rng, 11, 16), only=("y",)),
            numbers("forward", 3, 43, only=("y",)),
            numbers("backward", 1, 1, only=("grad_x",)),
            numbers("backward", 5, odd(rng, 11, 16), only=("grad_x",)),
            numbers("backward", 3, 43, only=("grad_x",)),
            numbers("far", 2, 20, far * rng.choice([-1, 1], 40)),
            numbers("sectors", 64, 96),
        ]

    def shapes(self, inputs):
        return dict.fromkeys(("y", "grad_x"), inputs["x"].shape)

    def forward(self, inputs):
        x = np.asarray(inputs["x"], np.float64)
        return {"y": gelu(x)}

    def backward(self, inputs):
        x, grad = exact(inputs, "x", "grad_y")
        return {"grad_x": grad * gelu_slope(x)}

    def rounding(self, inputs, expected):
        """P(x) is off by 4 u: rounding the argument of erf twice moves erf by less than u, erf is off by two
        units in the last place, the sum with 1 and the product round once more. exp turns the rounding of its
        argument into a relative error of x^2 u of the density; 8 u are added for the rest. Both are doubled,
        for other ways to compute GELU.
        """
        x, grad = exact(inputs, "x", "grad_y")
        slope = 8 * UNIT + np.abs(x * density(x)) * (x * x + 8) * 2 * UNIT
        return {"y": 8 * UNIT * np.abs(x) + TINY, "grad_x": np.abs(grad) * slope + TINY}

    def bounds(self, inputs):
        """Forward reads x and writes y; backward reads x and grad_y and writes grad_x: five arrays. One more
        array that is saved for backward is written and read: seven.
        """
        fewest = 5 * once(inputs["x"])
        return {"sectors": Bound("global_memory.sectors", 1.1 * fewest, 1.4 * fewest, "sectors")}


@task("ps13/layer_norm", points=12)
class LayerNormBothWays(TrainingTask):
    """y = (x - mean) / sqrt(variance + eps) * gain + shift for each row of x, and the gradients."""

    entry = "layer_norm"
    arguments = (
        "device",
        "x",
        "gain",
        "shift",
        "grad_y",
        "eps",
        "y",
        "grad_x",
        "grad_gain",
        "grad_shift",
    )
    differentiable = ("x", "gain", "shift")
    atomics = True  # sums over rows may use atomics
    items = (
        Item("forward", 2, title="Rows of any width"),
        Item("inputs", 3, title="The gradient by the rows"),
        Item("parameters", 2, title="The gradients by gain and shift"),
        Item("far", 2, title="Rows far from zero, and rows without any spread"),
        Item("sectors", 3, "structure", "Rows are fetched seldom"),
    )

    domain = {
        "rows": Whole(upto=70),
        "width": Whole(2, 1024, says=("of 2 to 1,024 numbers",)),
        "x": Values("float32", PLAIN, "negative", "equal", "zeros"),
        "asked": Choice("forward", "inputs", "parameters"),
    }
    parts = {"forward": ("y",), "inputs": ("grad_x",), "parameters": ("grad_gain", "grad_shift")}

    def fits(self, place):
        return place["rows"] * place["width"] <= 4200

    def at(self, rng, place):
        count, width, kind, asked = place.values()
        x = self.domain["x"].draw(rng, kind, (count, width))
        if kind in ("equal", "zeros"):
            return self.rows(rng, "far", count, width, ("y", "grad_shift"), x)
        return self.rows(rng, asked, count, width, self.parts[asked], x)

    @staticmethod
    def rows(rng, item, count, width, only=(), x=None):
        x = normal(rng, count, width, size=2.0) + np.float32(rng.uniform(-1, 1)) if x is None else x
        inputs = {
            "x": x.astype(np.float32),
            "gain": normal(rng, width) + np.float32(1),
            "shift": normal(rng, width),
            "grad_y": normal(rng, count, width),
            "eps": float(10.0 ** rng.uniform(-4, -1)),
            "far": int(item == "far"),
        }
        return Case(f"{item}, {count} x {width}, eps {inputs['eps']:.1e}", inputs, item, only)

    def make_cases(self, rng):
        cases = [
            self.rows(rng, item, *shape, only)
            for item, only in self.parts.items()
            for shape in (
                (3, odd(rng, 17, 25)),
                (odd(rng, 17, 20), 6),
                (4, 33) if len(only) > 1 else (1, 1024),
            )
        ]
        width = odd(rng, 20, 40)
        still = np.full((3, width), 1.0) * rng.choice([-8, 0, 0.5, 16], (3, 1), replace=False)
        centre = 4096.0 * rng.choice([-1, 1], (12, 1))
        return [
            *cases,
            self.rows(rng, "far", 3, width, x=still, only=("y", "grad_shift")),
            self.rows(rng, "far", 12, width, x=centre + normal(rng, 12, width), only=("y", "grad_shift")),
            self.rows(rng, "sectors", 64, 96),
        ]

    def shapes(self, inputs):
        x = inputs["x"].shape
        return {"y": x, "grad_x": x, "grad_gain": x[1:], "grad_shift": x[1:]}

    @staticmethod
    def normed(inputs):
        """(x hat, scale) in float64: scale = 1 / sqrt(variance + eps), x hat = (x - mean) * scale."""
        x = np.asarray(inputs["x"], np.float64)
        away = x - x.mean(axis=1, keepdims=True)
        scale = 1 / np.sqrt((away**2).mean(axis=1, keepdims=True) + inputs["eps"])
        return away * scale, scale

    def forward(self, inputs):
        return {"y": self.normed(inputs)[0] * inputs["gain"] + inputs["shift"]}

    def backward(self, inputs):
        hat, scale = self.normed(inputs)
        gain, grad = exact(inputs, "gain", "grad_y")
        g = grad * gain
        inner = g - g.mean(axis=1, keepdims=True) - hat * (g * hat).mean(axis=1, keepdims=True)
        return {
            "grad_x": scale * inner,
            "grad_gain": (grad * hat).sum(axis=0),
            "grad_shift": grad.sum(axis=0),
        }

    def rounding(self, inputs, expected):
        """x - mean is off by (width + 4) u (|x| + mean |x|), and x hat by `scale` times that. The variance, a
        sum of squares of such differences, adds a relative error of (width + 8) u and twice that of x - mean.
        Later products and sums add the usual bounds of sums.
        """
        hat, scale = self.normed(inputs)
        x, gain, shift, grad = (np.abs(a) for a in exact(inputs, "x", "gain", "shift", "grad_y"))
        rows, width = x.shape
        away = (width + 4) * UNIT * (x.mean(axis=1, keepdims=True) + x)
        spread = np.abs(hat).mean(axis=1, keepdims=True)
        relative = (width + 8) * UNIT + 2 * (away * scale).max(axis=1, keepdims=True) * spread
        hat_off = away * scale + np.abs(hat) * relative
        hat = np.abs(hat)
        g = grad * gain
        mean = (width + 4) * UNIT * g.mean(axis=1, keepdims=True)
        both = (g * hat).mean(axis=1, keepdims=True)
        both_off = (width + 6) * UNIT * both + (g * hat_off).mean(axis=1, keepdims=True)
        inner = 6 * UNIT * (g + g.mean(axis=1, keepdims=True) + hat * both)
        inner += mean + hat * both_off + hat_off * both
        largest = g + g.mean(axis=1, keepdims=True) + hat * both
        return {
            "y": 2 * (gain * hat_off + 3 * UNIT * (gain * hat + shift)),
            "grad_x": 2 * scale * (inner + relative * largest),
            "grad_gain": sum_tolerance(rows + 2, (grad * hat).sum(axis=0)) + 2 * (grad * hat_off).sum(axis=0),
            "grad_shift": sum_tolerance(rows, grad.sum(axis=0)),
        }

    def bounds(self, inputs):
        """Forward reads x once and writes y; backward reads x and grad_y and writes grad_x, and reads both
        again for the sums over rows: 7 arrays. A warp per row reads gain (twice) and shift for each row: 10,
        and a little for what is saved of each row. Full points also allow a second read of x forward, and
        atomics for each number's part of grad_gain and grad_shift, which read and write. Computing mean and
        variance again in backward, and reading everything twice, takes more than 20.
        """
        fewest = once(inputs["x"])
        return {"sectors": Bound("global_memory.sectors", 13.5 * fewest, 20.0 * fewest, "sectors")}


@task("ps13/cross_entropy", points=10)
class CrossEntropy(TrainingTask):
    """losses[step] = mean over rows of log(sum exp logits) - logits[label], and grad_logits = (softmax -
    one-hot) / batch. The labels of the batch are labels[first : first + batch].
    """

    entry = "cross_entropy"
    arguments = ("device", "logits", "labels", "first", "step", "losses", "grad_logits")
    through = "losses"
    differentiable = ("logits",)
    atomics = True  # the sum of the rows' losses may use atomics
    items = (
        Item("loss", 2, title="The mean loss, in its place"),
        Item("gradient", 3, title="The gradient by the logits"),
        Item("large", 2, title="Logits far from zero"),
        Item("sectors", 3, "structure", "Forward and backward are one pass over the logits"),
    )

    domain = {
        "batch": Whole(upto=257),
        "classes": Whole(2),
        "first": Whole(0, says=("labels[first : first + batch]",), upto=70),
        "logits": Values("float32", PLAIN, "equal", "negative", "ties"),
        "asked": Choice("loss", "gradient"),
    }

    def fits(self, place):
        return place["batch"] * place["classes"] <= 4200

    def at(self, rng, place):
        batch, classes, first, kind, asked = place.values()
        only = ("losses",) if asked == "loss" else ("grad_logits",)
        case = self.rows(rng, asked, batch, classes, only=only, first=first)
        case.inputs["logits"] = self.domain["logits"].draw(rng, kind, (batch, classes))
        return case

    @staticmethod
    def rows(rng, item, batch, classes, size=2.0, only=(), first=0):
        steps = int(rng.integers(3, 9))
        step = int(rng.integers(1, steps))
        inputs = {
            "logits": normal(rng, batch, classes, size=size),
            "labels": rng.integers(0, classes, first + batch + 3, np.int32),
            "first": int(first),
            "step": step,
            "losses": np.where(np.arange(steps) == step, 0, abs(normal(rng, steps))).astype(np.float32),
            "far": int(item == "large"),
        }
        return Case(f"{item}, {batch} x {classes}, step {inputs['step']}", inputs, item, only)

    def make_cases(self, rng):
        cases = [
            self.rows(rng, item, *shape, only=only)
            for item, only in (("loss", ("losses",)), ("gradient", ("grad_logits",)))
            for shape in ((1, 2), (odd(rng, 8, 11), 7, 2.0), (odd(rng, 2, 4), odd(rng, 17, 30)))
        ]
        cases += [
            self.rows(rng, item, odd(rng, 4, 9), 10, only=only, first=int(rng.integers(2, 20)))
            for item, only in (("loss", ("losses",)), ("gradient", ("grad_logits",)))
        ]
        low = self.rows(rng, "large", 3, 40, 1.0)
        low.inputs["logits"] -= np.float32(300)
        low.inputs["logits"][(0, 1, 2), (32, 3, 39)] = 300  # exp overflows without this maximum
        high = self.rows(rng, "large", 5, 12, 3000.0)
        high.inputs["logits"][0, 0] = 9999  # the maximum is in the first column
        return [
            *cases,
            high,
            low,
            self.rows(rng, "sectors", 64, 96),
        ]

    def shapes(self, inputs):
        return {"losses": inputs["losses"].shape, "grad_logits": inputs["logits"].shape}

    @staticmethod
    def labels(inputs):
        return inputs["labels"][inputs["first"] :][: len(inputs["logits"])]

    def forward(self, inputs):
        logits, losses = np.asarray(inputs["logits"], np.float64), inputs["losses"].astype(np.float64)
        losses[inputs["step"]], _ = training_runs.cross_entropy(logits, self.labels(inputs))
        return {"losses": losses}

    def weight(self, inputs):
        return np.ones(inputs["losses"].shape)

    def softmax(self, inputs):
        (logits,) = exact(inputs, "logits")
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def backward(self, inputs):
        (logits,) = exact(inputs, "logits")
        return {"grad_logits": training_runs.cross_entropy(logits, self.labels(inputs))[1]}

    def rounding(self, inputs, expected):
        """exp turns the rounding of a difference of logits into a relative error of |difference| u; the sum
        over C classes adds (C + 8) u. A loss is a difference of numbers as large as the logits, and the mean
        sums `batch` losses. The other elements of `losses` must keep their values.
        """
        (logits,) = exact(inputs, "logits")
        batch, classes = logits.shape
        reach = logits.max(axis=1, keepdims=True) - logits
        powers = self.softmax(inputs)
        relative = UNIT * (2 * (powers * reach).sum(axis=1, keepdims=True) + 2 * reach + 2 * classes + 16)
        one = relative.min(axis=1) + 4 * UNIT * (np.abs(logits).max(axis=1) + reach.max(axis=1))
        limit = np.zeros(inputs["losses"].shape)
        limit[inputs["step"]] = 2 * (one.mean() + (batch + 2) * UNIT * expected["losses"][inputs["step"]])
        return {
            "losses": limit,
            "grad_logits": 2 * (powers * relative + 4 * UNIT * np.abs(expected["grad_logits"])) / batch
            + 4 * UNIT * (powers + 1) / batch * (powers > 0)
            + TINY,
        }

    def bounds(self, inputs):
        """Three reads of the logits (for maximum, sum and result; fewer if a row stays on chip), one write of
        grad_logits, and up to four sectors per row for its label and loss. Writing the softmax and reading it
        again for the loss and the gradient makes six arrays.
        """
        fewest = 4 * once(inputs["logits"]) + 4 * len(inputs["logits"])
        return {"sectors": Bound("global_memory.sectors", 1.08 * fewest, 1.35 * fewest, "sectors")}


@task("ps13/adamw", points=9)
class AdamW(DriverTask):
    """One update of weights, m and v by AdamW, with bias correction and decoupled weight decay."""

    entry = "adamw"
    arguments = (
        "device",
        "grads",
        "step",
        "rate",
        "beta1",
        "beta2",
        "eps",
        "decay",
        "weights",
        "m",
        "v",
    )
    SHARE = 1 / 16
    items = (
        Item("moments", 2, title="The two moments"),
        Item("update", 2, title="The weights, after many steps"),
        Item("correction", 1, title="The first steps: bias correction"),
        Item("decay", 1, title="Weight decay beside the gradient, not in it"),
        Item("bytes", 3, "structure", "28 bytes a parameter"),
    )

    domain = {
        "n": Whole(),
        "step": Whole(says=("`step` counts from 1",), upto=9000),
        "grads": Values("float32", PLAIN, "equal", "zeros"),
        "asked": Choice("moments", "weights"),
    }

    def at(self, rng, place):
        n, step, kind, asked = place.values()
        item = "moments" if asked == "moments" else "update" if step >= 3000 else "correction"
        only = ("m", "v") if asked == "moments" else ("weights",)
        return self.parameters(rng, item, n, step, only=only, drawn=self.domain["grads"].draw(rng, kind, n))

    @staticmethod
    def parameters(rng, item, count, step, decay=0.0, only=(), drawn=None):
        count, step = int(count), int(step)
        grads = (normal(rng, count) if drawn is None else drawn) * np.float32(10.0 ** rng.uniform(-3, 1))
        fresh = step == 1
        inputs = {
            "grads": grads,
            "step": step,
            "rate": float(10.0 ** rng.uniform(-3, -1)),
            "beta1": float(rng.uniform(0.85, 0.95)),
            "beta2": float(rng.choice([0.95, 0.99, 0.999])),
            "eps": float(10.0 ** rng.uniform(-8, -4)),
            "decay": float(decay),
            "weights": normal(rng, count),
            "m": np.zeros(count, np.float32) if fresh else normal(rng, count) * grads,
            "v": np.zeros(count, np.float32) if fresh else grads**2 * np.float32(rng.uniform(0.5, 2)),
        }
        return Case(f"{item}, {count} parameters, step {step}, decay {decay:.2g}", inputs, item, only)

    def make_cases(self, rng):
        return [
            self.parameters(rng, "moments", 129, 5, only=("m", "v")),
            self.parameters(rng, "moments", odd(rng, 200, 400), odd(rng, 5, 30), only=("m", "v")),
            self.parameters(rng, "update", odd(rng, 200, 400), odd(rng, 3000, 9000), only=("weights",)),
            self.parameters(rng, "correction", odd(rng, 40, 80), 1, only=("weights",)),
            self.parameters(rng, "correction", odd(rng, 40, 80), 2, only=("weights",)),
            self.parameters(
                rng, "decay", odd(rng, 40, 80), odd(rng, 5, 30), rng.uniform(0.5, 2), only=("weights",)
            ),
            self.parameters(rng, "bytes", 4096, odd(rng, 5, 30), 0.01),
        ]

    def result(self, inputs):
        return {name: (inputs["weights"].shape, "float32") for name in ("weights", "m", "v")}

    def reference(self, inputs):
        w, m, v, g = exact(inputs, "weights", "m", "v", "grads")
        numbers = (inputs[name] for name in ("rate", "beta1", "beta2", "eps", "decay"))
        training_runs.adamw([w], [g], [(m, v)], inputs["step"] - 1, *numbers)
        return {"weights": w, "m": m, "v": v}

    def tolerance(self, inputs, expected):
        """beta and 1 - beta are off by u each, also if beta is rounded to float32 first: 4 u of the old
        moment and of the term added. A correction 1 - beta^step is off by (2 + step beta^step) u. The update
        takes over the relative errors of m and of sqrt(v), and adds u for each of its eight operations.
        """
        w, m, v, g = (np.abs(array) for array in exact(inputs, "weights", "m", "v", "grads"))
        first, second, step = inputs["beta1"], inputs["beta2"], inputs["step"]
        off_m, off_v = 4 * UNIT * (m + g), 4 * UNIT * (v + g * g)
        one, two = 1 - first**step, 1 - second**step
        lost = (2 + step * first**step) * UNIT / one, (2 + step * second**step) * UNIT / two
        root = np.sqrt(expected["v"] / two)
        below = root + inputs["eps"]
        size = np.abs(expected["m"]) / one / below
        with np.errstate(invalid="ignore", divide="ignore"):
            of_root = np.where(root > 0, root / below * (off_v / expected["v"] + lost[1]) / 2, 0.0)
        off = off_m / one / below + size * (of_root + lost[0] + 8 * UNIT)
        decayed = 1 + inputs["rate"] * inputs["decay"]
        return {
            "weights": 2 * (inputs["rate"] * off + 4 * UNIT * (w * decayed + inputs["rate"] * size)),
            "m": off_m + TINY,
            "v": off_v + TINY,
        }

    def bounds(self, inputs):
        """For each parameter the weight, the gradient and two moments are read, 16 bytes, and the weight and
        the moments are written, 12. Separate launches for m, v and the weights move 40.
        """
        fewest = 28 * inputs["weights"].size
        unit = f"bytes, for {inputs['weights'].size:,} parameters"
        return {"bytes": Bound("global_memory.bytes", 1.03 * fewest, 1.4 * fewest, unit)}


def settings(rng, steps):
    """Hyperparameters of AdamW, each large enough to change the results of a few steps. Both betas are drawn
    below their usual 0.9 and 0.99, so that a submission that takes those is seen.
    """
    return {
        "steps": steps,
        "rate": float(rng.uniform(0.03, 0.05)),
        "beta1": float(rng.uniform(0.3, 0.7)),
        "beta2": float(rng.uniform(0.4, 0.9)),
        "eps": float(10 ** rng.uniform(-3, -2)),
        "decay": float(rng.uniform(0.3, 0.6)),
    }


def run_tolerances(inputs, expected):
    """Absolute tolerances for a run's losses and weights. The error of float32 is below a hundredth of them,
    that of factors in TF32 below them (tests/models/test_training_runs.py).
    """
    limits = dict.fromkeys(expected, 0.002)
    if inputs["eps"] == TIMED["eps"]:
        limits["losses"] = 0.01 + 0.02 * expected["losses"]
    return limits


class TrainingRun(DriverTask):
    """A whole training run on the device: its losses, one per step, and the weights after the last step.

    weights: names of the weights, in order. The reference is the same run in float64.
    """

    atomics = True  # sums over rows, of losses and of gradients, may use atomics
    weights = ()

    def result(self, inputs):
        return {"losses": ((inputs["steps"],), "float32")} | {
            name: (inputs[name].shape, "float32") for name in self.weights
        }

    def tolerance(self, inputs, expected):
        """The tolerances that the notebook states."""
        return run_tolerances(inputs, expected)


@task("ps13/train_mlp", points=20)
class TrainMlp(TrainingRun):
    """A network of two layers learns drawn digits: its losses, one per step, and its final weights."""

    entry, weights = "train_mlp", WEIGHTS
    SHARE = 1 / 4
    arguments = (
        "device",
        *("images", "labels"),
        *("batch", "steps", "rate", "beta1", "beta2", "eps", "decay"),
        *WEIGHTS,
        "losses",
    )
    yardstick = {
        item: (f"warplab.models.training_runs.{of}", "images", "labels", *WEIGHTS)
        for item, of in (("time", "torch_mlp_timed"), ("compiled", "torch_mlp_compiled"))
    }
    items = (
        Item("first", 4, title="One step, any sizes"),
        Item("short", 5, title="A few steps: batches in turn, moments kept"),
        Item("learns", 5, title="The whole run: the loss falls as torch's does"),
        Item("launches", 2, "structure", "Few launches a step"),
        Item("bytes", 3, "structure", "Few sectors a step"),
        Item("time", 0.5, "time", "Time of 128 steps, beside PyTorch's, operation by operation (CUDA only)"),
        Item("compiled", 0.5, "time", "Time of 128 steps, beside torch.compile's (CUDA only)"),
    )
    domain = {
        "side": Whole(1, 16, says=("up to 256 pixels",)),
        "hidden": Whole(1, 128, says=("128 hidden numbers",)),
        "classes": Whole(1, 10, says=("10 classes",)),
        "batch": Whole(1, 128, says=("128 pictures in a batch",)),
        "batches": Whole(1, 3, says=("there is at least one whole batch",)),
        "steps": Whole(1, 6, says=("Of up to 6 steps",)),
    }
    corners = 3

    def fits(self, place):
        work = place["steps"] * place["batch"] * place["hidden"] * (place["side"] ** 2 + 10)
        return work <= 100_000

    def at(self, rng, place):
        """A case with up to batch - 1 pictures after the last whole batch."""
        side, hidden, classes, batch, batches, steps = place.values()
        pictures = batch * batches + int(rng.integers(batch))
        return self.run(
            rng, "short", pictures, side, hidden, classes, {"batch": batch} | settings(rng, steps)
        )

    def make_cases(self, rng):
        counted = {"batch": 32} | settings(rng, COUNTED_STEPS)
        certain = self.run(rng, "first", 64, 8, 32, 10, {"batch": 64} | settings(rng, 1))
        certain.inputs["b2"][-1] += np.float32(200)  # exp overflows without this maximum
        return [
            self.run(rng, "first", 1, 1, 1, 2, {"batch": 1} | settings(rng, 1)),
            certain,
            self.run(
                rng, "first", 37, 7, odd(rng, 16, 30), 9, {"batch": odd(rng, 10, 18)} | settings(rng, 1)
            ),
            self.run(
                rng, "short", 17, 5, odd(rng, 2, 15), int(rng.integers(3, 8)), {"batch": 7} | settings(rng, 5)
            ),
            self.run(
                rng, "short", 100, 6, odd(rng, 16, 35), 10, {"batch": odd(rng, 12, 24)} | settings(rng, 6)
            ),
            self.run(rng, "short", 40, 16, 128, 10, {"batch": 40} | settings(rng, 2)),
            self.run(rng, "learns", 128, 8, 32, 10, TIMED | {"batch": 32, "steps": 24}),
            self.run(rng, "launches", 128, 8, 32, 10, counted),
            self.run(rng, "bytes", 128, 8, 32, 10, counted),
            self.blank_pixel(rng),
        ]

    def blank_pixel(self, rng):
        """A case with a pixel that is 0 in every picture: its weights' gradients are 0, and AdamW divides by
        eps alone. The largest logit is neither the first nor the last.
        """
        case = self.run(rng, "short", 8, 3, 4, 3, TIMED | {"batch": 4, "steps": 2})
        case.inputs["images"][:, 0] = 0
        case.inputs["b2"][1] += np.float32(200)
        return case

    def make_timed(self, rng):
        """A case for each of the two timed rows: 1,024 pictures 16 times over, 16 MiB, each read once."""
        cases = []
        for row in self.yardstick:
            drawn = self.run(rng, row, 1024, 16, 128, 10, TIMED)
            more = {name: np.concatenate([drawn.inputs[name]] * 16) for name in ("images", "labels")}
            cases.append(replace(drawn, inputs=drawn.inputs | more))
        return cases

    @staticmethod
    def run(rng, item, pictures, side, hidden, classes, numbers):
        """A case: pictures of side x side pixels, initial weights, and the hyperparameters in `numbers`."""
        images, labels = drawn_digits(rng, pictures, side, classes)
        inputs = {
            "images": images,
            "labels": labels,
            **mlp_start(rng, side * side, hidden, classes),
            **numbers,
        }
        steps = f"{so_many(numbers['steps'], 'step')}, batches of {numbers['batch']} of {pictures:,} pictures"
        network = f"{side * side} - {hidden} - {classes}"
        only = ("losses",) if numbers["eps"] == TIMED["eps"] else ()
        return Case(f"{item}, {steps}, network {network}", inputs, item, only)

    def reference(self, inputs):
        return mlp_run(inputs)

    def bounds(self, inputs):
        """Launches: six per step and two per run; one kernel per operation takes twice as many.

        Sectors: `fewest` reads and writes each weight and its two moments once per step, and reads each
        picture of the batch once. Products in tiles of 16 x 16 with fused updates take 3.2 times as many,
        tiles with one kernel per operation 4.1 times, products without tiles 20 times.

        Time: a step in PyTorch is dozens of launches, none long enough to hide the next. torch.compile fuses
        what lies between its products, and AdamW on all weights, as the solution does, so twice its time gets
        full points. On an H200 the solution took a twenty-fifth of PyTorch's time and a tenth of
        torch.compile's (evidence/results/timed.yml).
        """
        steps, fewest = inputs["steps"], self.fewest_sectors(inputs)
        return {
            "launches": Bound("launches", 6 * steps + 2, 12 * steps + 2, f"launches in {steps} steps"),
            "bytes": Bound("global_memory.sectors", 3.5 * fewest, 7 * fewest, f"sectors in {steps} steps"),
            "time": Bound("time.ratio_low", 1.0, 3.0, "times the time of PyTorch, one operation at a time"),
            "compiled": Bound("time.ratio_low", 2.0, 6.0, "times the time of torch.compile"),
        }

    @staticmethod
    def fewest_sectors(inputs):
        """Sectors if each step reads and writes the weights and moments once, and reads its batch once."""
        numbers = 6 * sum(inputs[name].size for name in WEIGHTS) + inputs["batch"] * inputs["images"].shape[1]
        return inputs["steps"] * 4 * numbers / 32


@task("ps13/attention", points=10)
class CausalAttention(TrainingTask):
    """Causal attention in sequences of `length` rows: out = softmax(q k^T / sqrt(width)) v, where
    each row attends to itself and the rows before it; and the gradients.
    """

    entry = "attention"
    arguments = ("device", "q", "k", "v", "grad_out", "length", "out", "grad_q", "grad_k", "grad_v")
    through = "out"
    differentiable = ("q", "k", "v")
    atomics = True  # sums over rows may use atomics
    SHARE = 1 / 2
    items = (
        Item("forward", 2, title="Attention to this row and those before it"),
        Item("queries", 2, title="The gradient by the queries"),
        Item("keys", 3, title="The gradients by keys and values"),
        Item("large", 1, title="Scores far from zero"),
        Item("memory", 2, "structure", "No square of scores in memory"),
    )

    domain = {
        "sequences": Whole(upto=5),
        "length": Whole(1, 64, says=("a length of 1 to 64",)),
        "width": Whole(1, 64, says=("a width of 1 to 64",)),
        "asked": Choice("forward", "queries", "keys"),
    }
    parts = {"forward": ("out",), "queries": ("grad_q",), "keys": ("grad_k", "grad_v")}

    def fits(self, place):
        return place["sequences"] * place["length"] ** 2 * place["width"] <= 20_000

    def at(self, rng, place):
        sequences, length, width, asked = place.values()
        return self.tokens(rng, asked, sequences, length, width, self.parts[asked])

    @staticmethod
    def tokens(rng, item, sequences, length, width, only=(), size=1.0):
        rows, inputs = int(sequences * length), {"length": int(length), "far": int(item == "large")}
        for name in ("q", "k", "v", "grad_out"):
            inputs[name] = normal(rng, rows, width, size=size if name == "q" else 1.0)
        return Case(f"{item}, {sequences} of {length} rows, {width} wide", inputs, item, only)

    def make_cases(self, rng):
        longest = self.tokens(rng, "large", 1, 64, odd(rng, 17, 32), size=60.0)
        longest.inputs["k"][:32] *= np.float32(8)  # the first 32 keys have the largest scores
        return [
            *(
                self.tokens(rng, item, *shape, only)
                for item, only in self.parts.items()
                for shape in ((3, odd(rng, 2, 4), odd(rng, 2, 4)), (2, odd(rng, 17, 24), 4))
            ),
            self.tokens(rng, "forward", 1, 1, 1, ("out",)),
            self.tokens(rng, "keys", 1, 64, odd(rng, 2, 4), self.parts["keys"]),
            self.tokens(rng, "large", 2, odd(rng, 4, 8), 16, size=60.0),
            longest,
            self.tokens(rng, "memory", 2, 32, 4),
            self.all_far_below(rng),
        ]

    def all_far_below(self, rng):
        """A case whose scores are all -2^122: below the finite numbers that masks use for minus infinity."""
        case = self.tokens(rng, "large", 2, 5, 16, ("out",))
        case.inputs["q"][:], case.inputs["k"][:] = 2.0**60, -(2.0**60)
        case.inputs["equal"] = True
        return replace(case, name=f"{case.name}, all scores far below zero")

    def shapes(self, inputs):
        return dict.fromkeys(("out", "grad_q", "grad_k", "grad_v"), inputs["q"].shape)

    def cut(self, inputs, *names):
        """The named arrays as (sequence, row, width), in float64."""
        length = inputs["length"]
        return [
            np.asarray(inputs[name], np.float64).reshape(-1, length, inputs["q"].shape[1]) for name in names
        ]

    def weights(self, inputs):
        """The softmax of the causal scores, (sequence, row, row), in float64."""
        q, k = self.cut(inputs, "q", "k")
        scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=2, keepdims=True))
        return powers / powers.sum(axis=2, keepdims=True)

    def forward(self, inputs):
        (v,) = self.cut(inputs, "v")
        return {"out": (self.weights(inputs) @ v).reshape(inputs["q"].shape)}

    def backward(self, inputs):
        q, k, v, grad = self.cut(inputs, "q", "k", "v", "grad_out")
        shape, p = inputs["q"].shape, self.weights(inputs)
        by_p = grad @ v.swapaxes(1, 2)
        by_score = p * (by_p - (p * by_p).sum(axis=2, keepdims=True)) / math.sqrt(q.shape[2])
        return {
            "grad_q": (by_score @ k).reshape(shape),
            "grad_k": (by_score.swapaxes(1, 2) @ q).reshape(shape),
            "grad_v": (p.swapaxes(1, 2) @ grad).reshape(shape),
        }

    def rounding(self, inputs, expected):
        """A score is a sum of `width` products. Its error becomes a relative error of the weight, to which
        exp and the sum of up to `length` terms add a few u. Equal scores have equal errors, which cancel in
        the softmax. Each later array is off by the errors of its inputs and of its own sums.
        """
        q, k, v, grad = (np.abs(a) for a in self.cut(inputs, "q", "k", "v", "grad_out"))
        (_, length, width), shape, p = q.shape, inputs["q"].shape, self.weights(inputs)
        root = math.sqrt(width)
        raw = q @ k.swapaxes(1, 2) / root
        seen = np.where(np.tri(length, dtype=bool), raw, 0.0).max(axis=2, keepdims=True)
        seen *= not inputs.get("equal")
        relative = 2 * sum_tolerance(width + 3, seen) + UNIT * (8 * seen + 6 * length + 32)
        p_off = p * relative
        by_p = grad @ v.swapaxes(1, 2)
        by_p_off = sum_tolerance(width, by_p)
        inner = (p * by_p).sum(axis=2, keepdims=True)
        inner_off = sum_tolerance(length + 2, inner) + (p_off * by_p + p * by_p_off).sum(
            axis=2, keepdims=True
        )
        size = p * (by_p + inner) / root
        off = size * (relative + 6 * UNIT) + p * (by_p_off + inner_off) / root
        back, forth = size.swapaxes(1, 2), p.swapaxes(1, 2)

        def product(a, a_off, b):
            return (sum_tolerance(length + 1, a @ b) + a_off @ b + TINY).reshape(shape)

        return {
            "out": product(p, p_off, v),
            "grad_q": product(size, off, k),
            "grad_k": product(back, off.swapaxes(1, 2), q),
            "grad_v": product(forth, p_off.swapaxes(1, 2), grad),
        }

    def bounds(self, inputs):
        """Backward needs a few numbers per row: the largest score and the sum, or their logarithm, and the
        dot product of grad_out and out. Full points allow four, and two arrays of the size of q. A square of
        weights for each sequence takes 4 bytes x rows x length.
        """
        rows, width = inputs["q"].shape
        full = 4 * rows * (2 * width + 4)
        square = 4 * rows * inputs["length"]
        return {"memory": Bound("allocated_bytes", full, square, "bytes allocated")}


@task("ps13/embedding", points=5)
class Embedding(TrainingTask):
    """y[t] = table[tokens[first + t]]; grad_table[n] = sum of grad_y[t] over the t whose token is n."""

    entry = "embedding"
    arguments = ("device", "tokens", "first", "table", "grad_y", "y", "grad_table")
    differentiable = ("table",)
    atomics = True
    items = (
        Item("forward", 1, title="A row of the table for each token"),
        Item("backward", 2, title="Tokens that come again, and those that never come"),
        Item("sectors", 2, "structure", "Neighbours fetch neighbours"),
    )

    domain = {
        "batch": Whole(),
        "words": Whole(),
        "width": Whole(),
        "first": Whole(0, says=("y[t] = table[tokens[first + t]]",), upto=70),
        "asked": Choice("forward", "backward"),
    }

    def fits(self, place):
        return place["width"] * (place["batch"] + place["words"]) <= 4200

    def at(self, rng, place):
        batch, words, width, first, asked = place.values()
        only = ("y",) if asked == "forward" else ("grad_table",)
        return self.text(rng, asked, batch, words, width, first, only)

    @staticmethod
    def text(rng, item, count, words, width, first=0, only=()):
        inputs = {
            "tokens": rng.integers(0, words, first + count + 2, np.int32),
            "first": int(first),
            "table": normal(rng, words, width),
            "grad_y": normal(rng, count, width),
        }
        return Case(f"{item}, {so_many(count, 'token')} of {words}, {width} wide", inputs, item, only)

    def make_cases(self, rng):
        first = int(rng.integers(3, 30))
        parts = (("forward", ("y",)), ("backward", ("grad_table",)))
        return [
            *(
                self.text(rng, item, *shape, only=only)
                for item, only in parts
                for shape in (
                    (1, 1, 1),
                    (odd(rng, 20, 40), 5, odd(rng, 3, 6), first),
                    (7, 30, odd(rng, 17, 30)),
                )
            ),
            self.text(rng, "sectors", 128, 32, 32),
        ]

    def shapes(self, inputs):
        return {"y": inputs["grad_y"].shape, "grad_table": inputs["table"].shape}

    @staticmethod
    def batch(inputs):
        return inputs["tokens"][inputs["first"] :][: len(inputs["grad_y"])]

    def forward(self, inputs):
        return {"y": np.asarray(inputs["table"], np.float64)[self.batch(inputs)]}

    def backward(self, inputs):
        (grad,) = exact(inputs, "grad_y")
        total = np.zeros(inputs["table"].shape)
        np.add.at(total, self.batch(inputs), grad)
        return {"grad_table": total}

    def rounding(self, inputs, expected):
        """y is an exact copy. A row of grad_table sums as many rows of grad_y as its token has occurrences;
        the terms themselves are not rounded.
        """
        total = np.zeros(inputs["table"].shape)
        np.add.at(total, self.batch(inputs), np.abs(inputs["grad_y"].astype(np.float64)))
        often = np.bincount(self.batch(inputs), minlength=len(total))[:, None]
        return {"y": 0.0, "grad_table": sum_tolerance(often, total)}

    def bounds(self, inputs):
        """Forward reads and writes a row per token; backward reads a gradient and adds it by an atomic, which
        reads and writes: five arrays of tokens x width. The tokens are read, and grad_table is zeroed. Full
        points also allow a warp per word that reads every token, a sector each, in place of atomics. If each
        thread walks along its own row, forward or backward takes eight times the sectors, three times
        `fewest` in all.
        """
        batch, words = len(inputs["grad_y"]), len(inputs["table"])
        fewest = 5 * once(inputs["grad_y"]) + once(inputs["table"]) + 2 * batch
        full = fewest + batch * words
        return {"sectors": Bound("global_memory.sectors", full, 1.35 * full, "sectors")}


@task("ps13/train_text", points=7)
class TrainText(TrainingRun):
    """A one-block transformer learns a rhyme by letters: its losses, one per step, and its final weights."""

    entry, weights = "train_text", TEXT_WEIGHTS
    arguments = (
        "device",
        "tokens",
        *("length", "sequences", "steps", "rate", "beta1", "beta2", "eps", "decay"),
        *TEXT_WEIGHTS,
        "losses",
    )
    items = (
        Item("step", 3, title="One step, any sizes"),
        Item("short", 2, title="A few steps, from other letters each time"),
        Item("learns", 2, title="The whole run: the loss falls as PyTorch's does"),
    )
    domain = {
        "length": Whole(1, 64, says=("Length and width are at most 64",)),
        "sequences": Whole(upto=5),
        "width": Whole(1, 64, says=("Length and width are at most 64",)),
        "hidden": Whole(1, 128, says=("hidden numbers 128",)),
        "letters": Whole(1, 64, says=("letters 64",)),
        "steps": Whole(1, 3, says=("Of up to 3 steps",)),
    }
    corners = 2

    def fits(self, place):
        """Limits the multiply-adds of the products and of attention."""
        length, sequences, width, hidden, letters, steps = place.values()
        work = 4 * width + 2 * hidden + letters + length
        return steps * length * sequences * width * work <= 100_000

    def at(self, rng, place):
        length, sequences, width, hidden, letters, steps = place.values()
        return self.run(rng, "short", length, sequences, width, hidden, letters, settings(rng, steps))

    def make_cases(self, rng):
        whole = TIMED | {"steps": 8, "rate": 0.03}
        return [
            self.run(rng, "step", 1, 1, 1, 1, 2, settings(rng, 1)),
            self.run(rng, "step", odd(rng, 1, 4), 3, odd(rng, 2, 6), odd(rng, 3, 10), 6, settings(rng, 1)),
            self.run(
                rng,
                "step",
                odd(rng, 4, 12),
                2,
                odd(rng, 8, 20),
                odd(rng, 16, 35),
                len(LETTERS),
                settings(rng, 1),
            ),
            *(self.run(rng, "step", 2, 2, width, odd(rng, 2, 5), 5, settings(rng, 1)) for width in (33, 64)),
            self.run(rng, "short", odd(rng, 2, 4), 2, odd(rng, 2, 6), odd(rng, 3, 10), 9, settings(rng, 3)),
            self.run(rng, "learns", 16, 2, 16, 32, len(LETTERS), whole),
        ]

    @staticmethod
    def run(rng, item, length, sequences, width, hidden, letters, numbers):
        """A case: `sequences` of `length` letters, initial weights, and the hyperparameters in `numbers`."""
        rows = length * sequences
        tokens = tokens_of(RHYME)
        if item != "learns":
            tokens = rng.integers(0, letters, 2 * rows + int(rng.integers(1, 40)), np.int32)
        inputs = {"tokens": tokens, "length": length, "sequences": sequences}
        inputs |= text_start(rng, letters, length, width, hidden) | numbers
        steps = f"{so_many(numbers['steps'], 'step')} of {so_many(sequences, 'sequence')} of {length}"
        only = ("losses",) if numbers["eps"] == TIMED["eps"] else ()
        return Case(f"{item}, {steps}, width {width}, {letters} letters", inputs, item, only)

    def reference(self, inputs):
        return text_run(inputs)
