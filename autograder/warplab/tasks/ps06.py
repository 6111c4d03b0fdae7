"""Problem set 6, does it fit: the bytes of training and of a KV cache, activation checkpointing, gradient
accumulation, and the largest batch.
"""

import functools
import math

import numpy as np

from warplab.models.vram import activation_bytes
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import Task, VjpTask, task
from warplab.tasks.domain import Choice, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many

UNIT = 2.0**-24  # unit roundoff of float32
MOMENTS = {"sgd": 0, "momentum": 4, "adam": 8}  # bytes a parameter that the optimiser keeps, in FP32


def parameters_of(model):
    """Parameters of a warplab.models.networks.Transformer described by a dictionary."""
    width, vocabulary = model["width"], model["vocabulary"]
    block = 12 * width**2 + 13 * width
    return (2 * vocabulary + model["context"]) * width + model["layers"] * block + 2 * width


def state_of(parameters, recipe):
    """Bytes of weights, gradients, FP32 copy and optimiser."""
    weights, gradients, copy = (4, 4, 0) if recipe["precision"] == "fp32" else (2, 2, 4)
    return parameters * (weights + gradients + copy + MOMENTS[recipe["optimizer"]])


def number_of(recipe):
    """Bytes per activation."""
    return 4 if recipe["precision"] == "fp32" else 2


def recipe(precision, optimizer):
    return {"precision": precision, "optimizer": optimizer}


@task("ps06/training_bytes", points=20)
class TrainingBytes(Task):
    """Parameters of a transformer, bytes of the state that training keeps, and bytes of activations of one
    batch.
    """

    entry = "training_bytes"
    arguments = ("model", "recipe", "batch", "tokens")
    returns = {"parameters": "integers", "state": "integers", "activations": "integers"}
    items = (
        Item("parameters", 6, title="Parameters, to the last one"),
        Item("state", 8, title="State: weights, gradients, optimiser, and the FP32 copy, within 10 %"),
        Item("activations", 6, title="Activations, within 10 % of what is measured"),
    )
    domain = {
        "layers": Whole(upto=65),
        "width": Whole(multiple=8, upto=4104, says=("width",)),
        "vocabulary": Whole(upto=66_000),
        "batch": Whole(),
        "tokens": Whole(upto=2050),
        "precision": Choice("fp32", "mixed", said=True),
        "optimizer": Choice(*MOMENTS, said=True),
        "asked": Choice("parameters", "state", "activations"),
    }
    corners = 12

    def make_cases(self, rng):
        """The models of the rows on state have few words, so that a forgotten embedding matrix loses only the
        row on parameters; one of those on activations has many words and narrow layers, so that logits that
        are counted as activations of a block show.
        """

        def model(item, layers, width, trained, words=(13, 60_000), tokens=(10, 2048)):
            inputs = {
                "model": {
                    "vocabulary": int(rng.integers(*words)),
                    "context": 2048 if item == "activations" else int(rng.integers(12, 2048)),
                    "width": int(width),
                    "layers": int(layers),
                    "heads": 8,
                },
                "recipe": trained,
                "batch": int(rng.integers(2, 64)),
                "tokens": int(rng.integers(*tokens)),
            }
            size = f"{so_many(layers, 'layer')} of {width}"
            told = f"{item}, {size}, {trained['precision']}, {trained['optimizer']}"
            return Case(told, inputs, item, (item,))

        def any_size():
            return int(rng.integers(2, 40)), 8 * int(rng.integers(10, 600))

        return [
            model("parameters", 1, 8, recipe("fp32", "sgd")),
            model("parameters", *any_size(), recipe("mixed", "adam")),
            *(
                model("state", 12, 768, recipe(precision, optimizer), words=(13, 2000))
                for precision in ("fp32", "mixed")
                for optimizer in MOMENTS
            ),
            model("activations", 24, 1024, recipe("fp32", "adam")),
            model("activations", *any_size(), recipe("mixed", "sgd")),
            model("activations", *any_size(), recipe("mixed", "adam")),
            model("activations", 2, 80, recipe("fp32", "sgd"), words=(40_000, 60_000), tokens=(10, 1500)),
        ]

    def at(self, rng, place):
        """As in make_cases: in rows that do not ask for parameters there are few words."""
        model = {key: place[key] for key in ("vocabulary", "width", "layers")}
        model |= {"context": int(rng.integers(1, 4096)), "heads": 8}
        if place["asked"] != "parameters":
            model |= {
                "vocabulary": min(13, place["vocabulary"]),
                "context": 12,
                "width": max(96, place["width"]),
            }
        inputs = {
            "model": model,
            "recipe": recipe(place["precision"], place["optimizer"]),
            "batch": place["batch"],
            "tokens": place["tokens"],
        }
        item, size = place["asked"], f"{so_many(model['layers'], 'layer')} of {model['width']}"
        return Case(f"{item}, {size}", inputs, item, (item,))

    def reference(self, inputs):
        model, recipe = inputs["model"], inputs["recipe"]
        parameters = parameters_of(model)
        kept = activation_bytes(
            model["layers"],
            model["width"],
            model["heads"],
            inputs["tokens"],
            inputs["batch"],
            number=number_of(recipe),
        )
        return {
            "parameters": np.array(parameters),
            "state": np.array(state_of(parameters, recipe)),
            "activations": np.array(kept),
        }

    def tolerance(self, inputs, expected):
        """A bias that is forgotten loses the row on parameters only; a wrong recipe is off by at least a
        quarter.
        """
        return {name: 0.1 * float(expected[name]) for name in ("state", "activations")}


@task("ps06/checkpointed", points=25)
class Checkpointed(VjpTask):
    """y = x, then y = tanh(y @ w[l]) for every layer l; gradients for x and w, with few of the layers'
    results kept.
    """

    entry = "Again"
    arguments = differentiable = ("x", "w")
    items = (
        Item("right", 12, title="The result and both gradients"),
        Item("deep", 8, title="Any number of layers, also none"),
        Item("saved", 5, "structure", "Few results are kept between forward and backward"),
    )
    domain = {
        "layers": Whole(0, upto=9, says=("layers may be 0",)),
        "batch": Whole(upto=9),
        "width": Whole(upto=9),
    }

    @staticmethod
    def stack(rng, item, layers, batch, width):
        inputs = {
            "x": rng.normal(0, 1, (batch, width)).astype(np.float32),
            "w": rng.normal(0, 0.8 / math.sqrt(width), (layers, width, width)).astype(np.float32),
            "grad_out": rng.normal(0, 1, (batch, width)).astype(np.float32),
        }
        return Case(
            f"{item}, {so_many(layers, 'layer')} of {width} x {width}, batch of {batch}", inputs, item
        )

    def make_cases(self, rng):
        stack = functools.partial(self.stack, rng)
        return [
            stack("right", 5, 4, 5),
            stack("right", 2, 1, int(rng.integers(3, 8))),
            stack("deep", int(rng.integers(7, 12)), 3, 4),
            stack("deep", 1, 2, 3),
            stack("deep", 0, 2, 3),
            stack("saved", 12, 128, 4),
        ]

    def fits(self, place):
        return (place["batch"] + place["layers"] * place["width"]) * place["width"] <= 200

    def at(self, rng, place):
        return self.stack(rng, "deep", place["layers"], place["batch"], place["width"])

    def forward(self, inputs):
        y = inputs["x"].astype(np.float64)
        for w in inputs["w"].astype(np.float64):
            y = np.tanh(y @ w)
        return y

    def wrong_result(self, case, outcome):
        """The values of the given `plain` are right, so a submission that keeps the input of every layer, as
        autograd does there, earns nothing. With three layers, two of them may be kept.
        """
        counters = outcome.counters if outcome and not outcome.error else {}
        array, layers = case.inputs["x"].nbytes, len(case.inputs["w"])
        saved = counters.get("saved_bytes", 0) - case.inputs["w"].nbytes
        if layers > 3 and max(saved, counters.get("made_bytes", 0) + array) >= layers * array:
            return f"what goes into each of the {layers} layers is kept, as `plain` keeps it"
        return super().wrong_result(case, outcome)

    def rounding(self, inputs):
        """Each layer has roundings of `width` products and sums and of a tanh, forward and backward:
        `layers * (2 * width + 8)` in a chain, with a safety factor of 8, times the same chain of absolute
        values. An error of y also changes the slope 1 - y^2, by far less than 0.01.
        """
        layers, width, _ = inputs["w"].shape
        results, w = [np.abs(inputs["x"].astype(np.float64))], inputs["w"].astype(np.float64)
        for weights in w:
            results.append(np.tanh(results[-1] @ np.abs(weights)))
        slopes = [
            1.01 - self.forward({"x": inputs["x"], "w": inputs["w"][: n + 1]}) ** 2 for n in range(layers)
        ]
        back, grad_w = np.abs(inputs["grad_out"].astype(np.float64)), np.empty(w.shape)
        for n in reversed(range(layers)):
            back = back * slopes[n]
            grad_w[n], back = results[n].T @ back, back @ np.abs(w[n]).T
        each = 8 * UNIT * (layers + 1) * (2 * width + 8)
        return {
            "y": each * max(1.0, np.abs(inputs["x"]).max()),
            "grad_x": each * back,
            "grad_w": (each + 8 * UNIT * len(back)) * grad_w,
        }

    def bounds(self, inputs):
        """Autograd keeps the input of every layer and the last result, layers + 1 arrays, and w. Full points
        for a fourth of these arrays and w, none for three quarters of all.
        """
        array, weights = inputs["x"].nbytes, inputs["w"].nbytes
        layers = len(inputs["w"])
        return {
            "saved": Bound(
                "saved_bytes",
                weights + array * (layers / 4 + 2),
                weights + array * 0.75 * (layers + 1),
                "bytes kept",
            )
        }


@task("ps06/accumulate", points=20)
class Accumulate(Task):
    """The gradient of the mean squared error over a large batch that comes in parts, clipped as that of the
    whole batch.

    error = mean over all rows of (x @ w - y)^2, gradient by w; scaled down to the length max_norm if it is
    longer. Parts whose gradient is not finite are left out, with their rows; zeros if none is left.

    It crosses as a function: the lesson is a backward pass after each part, and a vjp crossing makes one
    through all parts together.
    """

    entry = "accumulate"
    arguments = ("w", "batches", "max_norm")
    returns = {"gradient": "float32"}
    items = (
        Item("equal", 2, title="Parts of equal size"),
        Item("ragged", 3, title="Parts of different sizes"),
        Item("clipped", 6, title="Clipped once, at the end"),
        Item("broken", 9, title="Parts with an infinity or a NaN are left out"),
    )
    domain = {
        "parts": Whole(upto=9),
        "rows": Whole(upto=260),
        "width": Whole(upto=65),
        "max_norm": Choice("infinite", "small", "large"),
        "broken": Choice("none", "the first", "the last", "all"),
    }
    corners = 12

    @staticmethod
    def batch(rng, item, sizes, max_norm=math.inf, broken=(), width=None, only=None):
        width = width or int(rng.integers(3, 20))
        truth = rng.normal(size=width)
        batches = []
        for size in sizes:
            x = rng.normal(0, 1 + rng.random(), (int(size), width)).astype(np.float32)
            batches.append([x, (x @ truth + rng.normal(0, 0.5, int(size))).astype(np.float32)])
        for part, value in broken:
            array = batches[part][int(rng.integers(2)) if only is None else only].reshape(-1)
            array[int(rng.integers(array.size))] = value
        inputs = {
            "w": rng.normal(size=width).astype(np.float32),
            "batches": batches,
            "max_norm": float(max_norm),
        }
        return Case(
            f"{item}, {so_many(len(sizes), 'part')} of {', '.join(str(int(n)) for n in sizes)}",
            inputs,
            item,
        )

    def make_cases(self, rng):
        batch = functools.partial(self.batch, rng)
        # Its values and its gradient are finite; its error overflows float32.
        overflowing = batch("broken", [5, 6, 2], broken=[(1, 2e19)], only=1)
        overflowing.inputs["batches"][1][0] *= np.float32(2.0**-10)
        return [
            batch("equal", [16, 16, 16, 16]),
            batch("equal", [8]),
            batch("ragged", [32, 32, 5]),
            batch("ragged", rng.integers(1, 40, 5)),
            batch("clipped", [24, 24, 24], 0.5),
            batch("clipped", [10, 31, 4], 1e6),
            batch("broken", [9, 20, 6], broken=[(1, np.nan)]),
            batch("broken", [1, 4], broken=[(1, np.nan)]),
            batch("broken", [7, 12, 30, 5], broken=[(0, np.inf), (2, -np.inf)]),
            batch("broken", [8, 3], broken=[(0, np.nan), (1, np.inf)]),
            overflowing,
        ]

    def at(self, rng, place):
        """Combinations of parts of several sizes, parts that are not finite, and clipping."""
        parts = place["parts"]
        sizes = [place["rows"], *rng.integers(1, 40, parts - 1)]
        bad = {"none": [], "the first": [0], "the last": [parts - 1], "all": range(parts)}[place["broken"]]
        broken = [(part, rng.choice([np.nan, np.inf, -np.inf])) for part in bad]
        item = "clipped" if place["max_norm"] == "small" else "broken" if broken else "ragged"
        most = {"infinite": math.inf, "small": 0.25, "large": 1e9}[place["max_norm"]]
        return self.batch(rng, item, sizes, most, broken, place["width"])

    def reference(self, inputs):
        w = inputs["w"].astype(np.float64)
        x, y = self.rows(inputs)
        gradient = 2 * x.T @ (x @ w - y) / max(1, len(x))
        length = np.linalg.norm(gradient)
        return {"gradient": gradient * min(1.0, inputs["max_norm"] / length if length else 1.0)}

    @staticmethod
    def rows(inputs):
        """(x, y) of all parts with finite values only, float64."""
        parts = [[np.asarray(part, np.float64) for part in batch] for batch in inputs["batches"]]
        whole = [(x, y) for x, y in parts if np.isfinite(x).all() and np.isfinite(y).all()]
        none = [(np.zeros((0, len(inputs["w"]))), np.zeros(0))]
        return tuple(np.concatenate(part) for part in zip(*(whole or none), strict=True))

    def tolerance(self, inputs, expected):
        """Sums over features and rows of float32 products; clipping scales the error with the gradient."""
        w = np.abs(inputs["w"].astype(np.float64))
        x, y = map(np.abs, self.rows(inputs))
        return {"gradient": 2 * sum_tolerance(len(w) + len(x) + 8, 2 * x.T @ (x @ w + y) / max(1, len(x)))}


@task("ps06/largest_batch", points=15)
class LargestBatch(Task):
    """The largest number of sequences that fit on a card besides the state of training, or 0."""

    entry = "largest_batch"
    arguments = ("model", "recipe", "tokens", "card", "checkpoint")
    returns = {"batch": "integers"}
    items = (
        Item("plain", 6, title="Without checkpointing"),
        Item("checkpoint", 5, title="With a checkpoint at every layer"),
        Item("too_small", 4, title="Cards that are too small, or only just large enough"),
    )
    domain = {
        "layers": Whole(upto=65),
        "width": Whole(multiple=8, upto=2056, says=("width",)),
        "tokens": Whole(upto=2050),
        "fit": Whole(0, upto=130, says=("0 if none does",)),
        "left": Choice("no byte", "one byte less", "half of one more"),
        "checkpoint": Choice(True, False),
        "precision": Choice("fp32", "mixed"),
        "optimizer": Choice(*MOMENTS),
    }
    corners = 12

    def make_cases(self, rng):
        def card(item, checkpoint, trained, share):
            model = {
                "vocabulary": int(rng.integers(10_000, 60_000)),
                "context": 2048,
                "width": 64 * int(rng.integers(8, 40)),
                "layers": int(rng.integers(6, 40)),
                "heads": 8,
            }
            state = state_of(parameters_of(model), trained)
            inputs = {
                "model": model,
                "recipe": trained,
                "tokens": int(rng.integers(200, 2048)),
                "checkpoint": checkpoint,
            }
            inputs["card"] = int(state * share) if share < 1 else state + int(share * self.one(inputs))
            return Case(
                f"{item}, {so_many(model['layers'], 'layer')} of {model['width']}, "
                f"card of {inputs['card'] / 1e9:.2f} GB",
                inputs,
                item,
            )

        def almost():
            """A number of sequences whose integer part fits. It is so large that one array too many or
            too few per sequence, of 40 + 16 at most, changes the result by at least one.
            """
            return int(rng.integers(60, 120)) + float(rng.uniform(0.6, 0.95))

        return [
            card("plain", False, recipe("mixed", "adam"), int(rng.integers(1, 60))),
            card("plain", False, recipe("fp32", "momentum"), almost()),
            card("plain", False, recipe("mixed", "sgd"), almost()),
            card("checkpoint", True, recipe("mixed", "momentum"), almost()),
            card("checkpoint", True, recipe("fp32", "adam"), almost()),
            card("too_small", False, recipe("mixed", "adam"), 0.9),
            card("too_small", True, recipe("fp32", "momentum"), 0.3),
            card("too_small", False, recipe("mixed", "sgd"), float(rng.uniform(1.1, 1.9))),  # just one
        ]

    @staticmethod
    def one(inputs):
        """Bytes kept per sequence."""
        model, segments = inputs["model"], inputs["model"]["layers"] if inputs["checkpoint"] else None
        shape = model["layers"], model["width"], model["heads"], inputs["tokens"]
        return int(activation_bytes(*shape, number=number_of(inputs["recipe"]), segments=segments))

    def at(self, rng, place):
        """A card with memory for exactly `fit` sequences, or one byte less, or half a sequence more.

        Errors with checkpoints belong to their own row, so small cards are without them.
        """
        none = place["fit"] - (place["left"] == "one byte less") < 1
        place = place | {"checkpoint": place["checkpoint"] and not none}
        trained = recipe(place["precision"], place["optimizer"])
        model = {"vocabulary": int(rng.integers(1, 60_000)), "context": 2048, "heads": 8}
        model |= {"width": place["width"], "layers": place["layers"]}
        inputs = {
            "model": model,
            "recipe": trained,
            "tokens": place["tokens"],
            "checkpoint": place["checkpoint"],
        }
        one = self.one(inputs)
        more = {"no byte": 0, "one byte less": -1, "half of one more": one // 2}[place["left"]]
        inputs["card"] = state_of(parameters_of(model), trained) + place["fit"] * one + more
        item = "too_small" if none else "checkpoint" if place["checkpoint"] else "plain"
        size = f"{so_many(place['layers'], 'layer')} of {place['width']}"
        return Case(f"{item}, {size}, room for {so_many(place['fit'], 'sequence')}", inputs, item)

    def reference(self, inputs):
        left = inputs["card"] - state_of(parameters_of(inputs["model"]), inputs["recipe"])
        return {"batch": np.array(max(0, left // self.one(inputs)))}


@task("ps06/kv_cache_bytes", points=15)
class KvCacheBytes(Task):
    """Bytes of the keys and values of a batch, and the longest sequence whose keys and values fit into the
    free memory. `local` of the layers keep only the last `window` tokens of a sequence.
    """

    entry = "kv_cache_bytes"
    arguments = ("model", "batch", "tokens", "free")
    returns = {"bytes": "integers", "most": "integers"}
    items = (
        Item("heads", 2, title="A key and a value for every head"),
        Item("groups", 1, title="Heads that share keys and values"),
        Item("windows", 6, title="Layers that keep the last tokens only"),
        Item("most", 6, title="The longest sequence that fits"),
    )
    domain = {
        "layers": Whole(upto=129),
        "local": Choice("none", "one", "all but one"),
        "window": Whole(upto=2050),
        "kv_heads": Whole(upto=65),
        "number": Choice(1, 2),
        "batch": Whole(),
        "tokens": Whole(upto=8200),
        "fit": Whole(0, upto=300_000, says=("fit into `free` bytes",)),
        "left": Choice("no byte", "one byte less"),
    }
    corners = 12

    def make_cases(self, rng):
        def server(item, heads, shared, only, local=0.0, long=False, free=None, one_beyond=False):
            layers = int(rng.integers(6, 80))
            model = {
                "layers": layers,
                "local": int(local * layers),
                "window": int(rng.integers(400, 3000)),
                "heads": heads,
                "kv_heads": heads // shared,
                "head_size": int(rng.choice([64, 80, 128])),
                "number": int(rng.choice([1, 2])),
            }
            inputs = {
                "model": model,
                "batch": int(rng.integers(1, 200)),
                "tokens": int(rng.integers(1, 8000)),
                "free": int(rng.integers(10**9, 10**11)),
            }
            if local:
                inputs["tokens"] = int(
                    model["window"] * (rng.uniform(1.5, 4) if long else rng.uniform(0.2, 0.9))
                )
                each = 2 * model["kv_heads"] * model["head_size"] * model["number"]
                inputs["free"] = int(each * (self.kept(model, inputs["tokens"]) + rng.uniform(-0.4, 0.4)))
            if one_beyond:  # one token past the window: only layers that keep all tokens need memory for it
                each = 2 * model["kv_heads"] * model["head_size"] * model["number"]
                inputs["free"] = each * self.kept(model, model["window"] + 1)
            if free is not None:
                inputs["free"] = free
            return Case(
                f"{item}, {so_many(model['layers'], 'layer')}, {so_many(heads, 'head')}, "
                f"{model['kv_heads']} with keys and values",
                inputs,
                item,
                (only,),
            )

        return [
            server("heads", 32, 1, "bytes"),
            server("heads", 12, 1, "bytes"),
            server("groups", 64, 8, "bytes"),
            server("groups", 40, 40, "bytes"),
            *(
                server("windows", 32, 4, "bytes", local, long)
                for local in (0.5, 0.85)
                for long in (True, False)
            ),
            server("most", 32, 1, "most"),
            *(server("most", 64, 8, "most", local, long) for local in (0.5, 0.85) for long in (True, False)),
            server("most", 64, 8, "most", 0.5, free=100),  # not a single token
            server("most", 16, 2, "most", 0.9, one_beyond=True),
        ]

    @staticmethod
    def kept(model, tokens):
        """Keys (or values) per head that a sequence of `tokens` keeps, summed over the layers."""
        everywhere = model["layers"] - model["local"]
        return everywhere * tokens + model["local"] * min(tokens, model["window"])

    def at(self, rng, place):
        """Free memory for exactly `fit` tokens, or one byte less."""
        layers, window = place["layers"], place["window"]
        local = {"none": 0, "one": min(1, layers - 1), "all but one": layers - 1}[place["local"]]
        model = {"layers": layers, "local": local, "window": window, "kv_heads": place["kv_heads"]}
        model |= {"heads": 4 * place["kv_heads"], "head_size": 64, "number": place["number"]}
        each = 2 * model["kv_heads"] * model["head_size"] * model["number"]
        free = each * self.kept(model, place["fit"]) - (place["left"] == "one byte less")
        inputs = {"model": model, "batch": place["batch"], "tokens": place["tokens"], "free": max(0, free)}
        item, only = ("most", "most") if rng.random() < 0.5 else ("windows" if local else "groups", "bytes")
        told = f"{so_many(layers, 'layer')}, {local} of them local, {so_many(place['fit'], 'token')} fit"
        return Case(f"{item}, {told}", inputs, item, (only,))

    def reference(self, inputs):
        model = inputs["model"]
        each = 2 * model["kv_heads"] * model["head_size"] * model["number"]
        room, window = inputs["free"] // each, model["window"]
        beyond = room - self.kept(model, window)
        most = (
            window + beyond // (model["layers"] - model["local"]) if beyond >= 0 else room // model["layers"]
        )
        return {
            "bytes": np.array(each * inputs["batch"] * self.kept(model, inputs["tokens"])),
            "most": np.array(most),
        }
