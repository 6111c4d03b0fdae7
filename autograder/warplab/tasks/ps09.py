"""Problem set 9, training and inference: a mixed-precision step, the FLOP of training, a KV cache, bounds on
decoding, 2:4 pruning, and a server that batches requests.
"""

import functools
import math
from dataclasses import replace

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import Task, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Case, Item, so_many

UNIT = 2.0**-24  # unit roundoff of float32
MOMENTUM, GROWTH_INTERVAL = 0.9, 4  # of train_step: this many good steps in a row double the scale


@task("ps09/train_step", points=20)
class TrainStep(Task):
    """One optimiser step in mixed precision from a scaled float16 gradient.

    Any inf or NaN: nothing changes but scale /= 2 and good = 0. Else, in float32: g = gradient / scale,
    moment = 0.9 moment + g, master -= lr moment, good += 1; at good == 4: scale *= 2 and good = 0. weights =
    float16(master). A Task, not a VjpTask: the gradient is an input, and a step that rounds and branches has
    no derivative to check.
    """

    entry = "train_step"
    arguments = ("master", "moment", "gradient", "scale", "good", "lr")
    returns = {
        "master": "float32",
        "moment": "float32",
        "weights": "float16",
        "scale": "numbers",
        "good": "integers",
    }
    items = (
        Item("finite", 7, title="A good step"),
        Item("overflow", 6, title="A gradient that has overflowed"),
        Item("growth", 3, title="After four good steps the scale doubles"),
        Item("small", 4, title="Updates too small for 16 bits survive"),
    )
    domain = {
        "n": Whole(),
        "good": Choice(0, 1, 2, 3),
        "scale": Choice(1.0, 1024.0, 2.0**16, 0.5),
        "broken": Choice("none", "inf", "-inf", "nan"),
        "lr": Choice(1e-4, 0.1, 0.0),
    }
    corners = 8

    @staticmethod
    def step(rng, item, broken=None, good=0, lr=None, scale=None, moment_std=1e-3, large=False, count=None):
        count = count or int(rng.integers(5, 40))
        lr = float(rng.uniform(0.02, 0.1)) if lr is None else lr
        scale = float(2.0 ** rng.integers(4, 14)) if scale is None else scale
        gradient = rng.uniform(2e-4, 2e-3, count) * rng.choice(
            [-1, 1], count
        )  # float16 represents these well even without a scale
        if item in ("finite", "small"):
            gradient[int(rng.integers(count))] = 1.2345e-6  # subnormal in float16 without a scale
        gradient = (scale * gradient).astype(np.float16)
        if large:  # each is finite, but a sum in float16 is not
            gradient[:4] = rng.uniform(30_000, 60_000, 4)
        if broken is not None:
            gradient[int(rng.integers(count))] = broken
        inputs = {
            "master": rng.normal(0, 1, count).astype(np.float32),
            "moment": rng.normal(0, moment_std, count).astype(np.float32),
            "gradient": gradient,
            "scale": scale,
            "good": good,
            "lr": lr,
        }
        return Case(f"{item}, {count} weights, scale {scale:g}", inputs, item)

    def make_cases(self, rng):
        step = functools.partial(self.step, rng)
        return [
            step("finite"),
            step("finite", good=1, scale=65536.0),
            step("finite", moment_std=1.0),  # large enough to detect a learning rate rounded to float16
            step("finite", scale=65536.0, large=True),
            step("overflow", np.inf, good=2),
            step("overflow", np.nan, good=3),
            step("overflow", -np.inf),
            step("growth", good=3),
            step("growth", good=2),
            step("small", lr=1e-4),
        ]

    def at(self, rng, place):
        broken = None if place["broken"] == "none" else float(place["broken"])
        item = "finite" if broken is None else "overflow"
        if item == "finite" and place["good"] == 3:
            item = "growth"
        more = {"good": place["good"], "lr": place["lr"], "scale": place["scale"], "count": place["n"]}
        return self.step(rng, item, broken, **more)

    def reference(self, inputs):
        master, moment, scale, good = inputs["master"], inputs["moment"], inputs["scale"], inputs["good"]
        if np.isfinite(inputs["gradient"]).all():
            moment = MOMENTUM * moment.astype(np.float64) + inputs["gradient"].astype(np.float64) / scale
            master = master.astype(np.float64) - inputs["lr"] * moment
            good += 1
            if good == GROWTH_INTERVAL:
                scale, good = 2 * scale, 0
        else:
            scale, good = scale / 2, 0
        master, moment = (np.asarray(array, np.float64) for array in (master, moment))
        return {
            "master": master,
            "moment": moment,
            "weights": master,
            "scale": np.array(scale),
            "good": np.array(good),
        }

    def tolerance(self, inputs, expected):
        """A few float32 roundings; the weights differ from the master by one more rounding, to float16."""
        size = np.abs(expected["moment"]).max() + np.abs(inputs["moment"]).max()
        steps = 4 * UNIT * (np.abs(expected["master"]).max() + inputs["lr"] * size)
        return {
            "moment": 4 * UNIT * size,
            "master": steps,
            "weights": 2.0**-11 * np.abs(expected["master"]) + 2.0**-24 + steps,
        }


@task("ps09/six_nd", points=15)
class SixNd(Task):
    """The FLOP of training a transformer, and the time in days.

    n = layers * 12 width^2 (weights of the blocks); rule = 6 n tokens; full adds attention: 12 layers width
    context per token; days = full / (gpus * peak * share) / 86,400.
    """

    entry = "six_nd"
    arguments = ("layers", "width", "context", "tokens", "gpus", "peak", "share")
    returns = {"rule": "numbers", "full": "numbers", "days": "numbers"}
    items = (
        Item("rule", 3, title="The rule: 6 N D"),
        Item("full", 5, title="With attention"),
        Item("days", 5, title="Days, where attention hardly counts"),
        Item("long", 2, title="Days of a long context, attention included"),
    )
    domain = {
        "layers": Whole(upto=130),
        "width": Whole(upto=16_400),
        "context": Whole(upto=66_000),
        "asked": Choice("rule", "full", "long"),
    }

    @staticmethod
    def run(rng, item, layers, width, context):
        inputs = {
            "layers": int(layers),
            "width": int(width),
            "context": int(context),
            "tokens": int(rng.integers(10**8, 10**12)),
            "gpus": int(rng.integers(1, 2000)),
            "peak": float(rng.uniform(1e14, 2e15)),
            "share": float(rng.uniform(0.2, 0.6)),
        }
        only = "days" if item == "long" else item
        return Case(
            f"{item}, {so_many(layers, 'layer')} of {width}, context {context}", inputs, item, (only,)
        )

    def make_cases(self, rng):
        run = functools.partial(self.run, rng)
        return [
            run("rule", 96, 12_288, 2048),
            run("rule", rng.integers(2, 80), 64 * rng.integers(4, 100), 1024),
            run("full", 12, 768, 1024),
            run("full", rng.integers(2, 80), 64 * rng.integers(4, 100), 2 ** rng.integers(9, 18)),
            run("days", rng.integers(2, 80), 64 * rng.integers(450, 600), 1),
            run("long", rng.integers(2, 80), 64 * rng.integers(4, 20), 2 ** rng.integers(14, 18)),
        ]

    def at(self, rng, place):
        return self.run(rng, place["asked"], place["layers"], place["width"], place["context"])

    def reference(self, inputs):
        rule = 6.0 * 12 * inputs["layers"] * inputs["width"] ** 2 * inputs["tokens"]
        full = rule + 12.0 * inputs["layers"] * inputs["width"] * inputs["context"] * inputs["tokens"]
        days = full / (inputs["gpus"] * inputs["peak"] * inputs["share"]) / 86_400
        return {"rule": np.array(rule), "full": np.array(full), "days": np.array(days)}

    def tolerance(self, inputs, expected):
        """Tight enough for days of 86,400 seconds and not 86,401."""
        return {name: (1e-5 if name == "days" else 1e-9) * float(value) for name, value in expected.items()}


@task("ps09/kv_decode", points=20)
class KvDecode(Task):
    """Causal attention for new tokens with a KV cache: token t attends to all cached tokens and to the new
    ones up to itself.

    keys = [keys, x @ wk], values = [values, x @ wv];
    out[t] = softmax(q keys[:n+t+1]^T / sqrt(d)) values[:n+t+1],
    with q = x[t] @ wq and n the number of cached keys. The inputs of the cached tokens are not given.
    """

    entry = "kv_decode"
    arguments = ("x", "wq", "wk", "wv", "keys", "values")
    returns = {"out": "float32", "keys": "float32", "values": "float32"}
    items = (
        Item("same", 9, title="The same numbers as attention over all tokens so far"),
        Item("long", 5, title="Longer texts, larger scores"),
        Item("kept", 6, title="The cache afterwards: what was in it, and the new tokens"),
    )
    domain = {
        "new": Whole(upto=65),
        "known": Whole(0, upto=260),
        "d": Whole(upto=65),
        "scores": Choice(PLAIN, "large", "below -1e9"),
    }
    corners = 8

    @staticmethod
    def sequence(rng, item, known, tokens, width, size=1.0, only=("out",)):
        inputs = {"x": (size * rng.normal(size=(int(tokens), width))).astype(np.float32)}
        inputs |= {
            name: (size * rng.normal(size=(int(known), width))).astype(np.float32)
            for name in ("keys", "values")
        }
        inputs |= {
            name: (rng.normal(size=(width, width)) / math.sqrt(width)).astype(np.float32)
            for name in ("wq", "wk", "wv")
        }
        name = f"{item}, {so_many(known, 'token')} of {width} and {tokens} more"
        return Case(name, inputs, item, only)

    def make_cases(self, rng):
        sequence = functools.partial(self.sequence, rng)

        def apart(item):
            """Two scores, near 0 and about 1.5, of positive terms only: sqrt(7) in float16 is detected."""
            inputs = {name: np.eye(7, dtype=np.float32) for name in ("wq", "wk", "wv")}
            for name, low, high in (("x", 0.7, 0.8), ("keys", 0.0, 0.1), ("values", -1.1, -0.9)):
                inputs[name] = rng.uniform(low, high, (1, 7)).astype(np.float32)
            return Case(f"{item}, 1 token of 7 and 1 more, far apart", inputs, item, ("out",))

        return [
            sequence("same", 0, 1, 4),
            sequence("same", 0, 7, 8),
            sequence("same", rng.integers(5, 12), 1, 8),
            sequence("same", rng.integers(9, 20), rng.integers(2, 9), 6),
            apart("same"),
            sequence("long", 0, 60, 8, 6.0),
            sequence("long", 300, 5, 8, 6.0),
            sequence("long", 20, 12, 8, 1.5),
            apart("long"),
            sequence("kept", rng.integers(5, 30), rng.integers(2, 9), 4, 1.0, ("keys", "values")),
            sequence("kept", 0, 3, 4, 1.0, ("keys", "values")),
            sequence("kept", 6, 1, 4, 1.0, ("keys", "values")),
        ]

    def at(self, rng, place):
        """For scores below -1e9 all of a query's scores are the same power of two: exact, weights equal."""
        item, size = ("same", 1.0) if place["scores"] == PLAIN else ("long", 3.0)
        if place["scores"] != "below -1e9":
            return self.sequence(rng, item, place["known"], place["new"], place["d"], size)
        case = self.sequence(rng, item, place["known"], place["new"], 4)
        one = np.eye(4, dtype=np.float32)
        case.inputs.update(wq=-one, wk=one, exact=1)
        for name in ("x", "keys"):
            case.inputs[name][:] = 2.0**17
        return case

    def reference(self, inputs):
        x, wq, wk, wv = (inputs[name].astype(np.float64) for name in ("x", "wq", "wk", "wv"))
        keys, values = (
            np.concatenate([inputs[name].astype(np.float64), x @ w])
            for name, w in (("keys", wk), ("values", wv))
        )
        scores = (x @ wq) @ keys.T / math.sqrt(x.shape[1])
        scores[np.triu(np.ones(scores.shape, bool), 1 + len(keys) - len(x))] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out = weights / weights.sum(axis=1, keepdims=True) @ values
        return {"out": out, "keys": keys, "values": values}

    def tolerance(self, inputs, expected):
        """A score is a product of projections; its absolute error is a relative error of the softmax weight,
        and `out` is the weighted mean of the values.
        """
        x, wq, wk, wv = (np.abs(inputs[name].astype(np.float64)) for name in ("x", "wq", "wk", "wv"))
        known = len(inputs["keys"])
        keys, values = (
            np.concatenate([np.abs(inputs[name].astype(np.float64)), x @ w])
            for name, w in (("keys", wk), ("values", wv))
        )
        width = x.shape[1]
        seen = np.tril((x @ wq) @ keys.T, known)
        score = sum_tolerance(3 * width, seen.max(axis=1, keepdims=True) / math.sqrt(width), slack=1.0)
        score *= "exact" not in inputs
        made = {name: sum_tolerance(width, array) for name, array in (("keys", keys), ("values", values))}
        for array in made.values():
            array[:known] = 0  # the cached rows are inputs, and exact
        return {"out": (2 * score + UNIT * (8 * len(keys) + 4 * width + 32)) * values.max()} | made


@task("ps09/decode_bound", points=10)
class DecodeBound(Task):
    """The upper bound on tokens/s of a single request, the batch size at which decoding becomes
    compute-bound, and the number of requests that fit into the card's memory.

    one = bandwidth / (weights + cache), crossing = peak * bytes of weights / (2 * parameters * bandwidth),
    without caches, fit = (memory - weights) // cache, at least 0. weights = parameters * number;
    number: bytes per parameter.
    """

    entry = "decode_bound"
    arguments = ("parameters", "number", "cache", "card")
    returns = {"one": "numbers", "crossing": "numbers", "fit": "integers"}
    items = (
        Item("one", 2, title="A single request"),
        Item("crossing", 4, title="Where arithmetic becomes short"),
        Item("fit", 4, title="Requests that fit"),
    )
    domain = {
        "number": Choice(2, 1, 0.5),
        "fit": Whole(0, upto=300, says=("0 if the weights do not fit",)),
        "left": Choice("no byte", "one byte less", "weights alone are too much"),
    }

    @staticmethod
    def server(rng, item, parameters, number, room=None, more=0):
        card = {
            "bandwidth": float(rng.uniform(0.3e12, 8e12)),
            "peak": float(rng.uniform(6e13, 2e15)),
            "memory": int(rng.integers(16, 200)) * 10**9,
        }
        inputs = {
            "parameters": int(parameters),
            "number": number,
            "cache": int(rng.integers(10**7, 10**9)),
            "card": card,
        }
        if room is not None:
            card["memory"] = int(parameters * number + room * inputs["cache"]) + more
        told = f"{item}, {parameters / 1e9:.0f} B parameters of {number:g} byte{'' if number == 1 else 's'}"
        return Case(told, inputs, item, (item,))

    def make_cases(self, rng):
        server = functools.partial(self.server, rng)

        def requests():
            return int(rng.integers(1, 60))

        small, large = (int(n) * 10**9 for n in (rng.integers(1, 9), rng.integers(450, 600)))
        return [
            server("one", small, 2.0),
            server("one", large, 0.5),
            server("crossing", small, 1.0),
            server("crossing", large, 2.0),
            server("fit", small, 2.0, requests()),
            server("fit", small, 0.5, requests() + float(rng.uniform(0.6, 0.95))),
            server("fit", small, 1.0, float(rng.uniform(0.6, 0.95))),
            server("fit", large, 0.5),
        ]

    def at(self, rng, place):
        """Memory for exactly `fit` requests, for one byte less, or for less than the weights."""
        room, more = place["fit"], -(place["left"] == "one byte less")
        if place["left"].startswith("weights"):
            room, more = 0, -(10**6)
        case = self.server(rng, "fit", 2 * int(rng.integers(5, 40)) * 10**8, place["number"], room, more)
        return replace(case, name=f"{case.name}, room for {room}")

    def reference(self, inputs):
        card, weights = inputs["card"], inputs["parameters"] * inputs["number"]
        one = card["bandwidth"] / (weights + inputs["cache"])
        crossing = card["peak"] * weights / (2 * inputs["parameters"] * card["bandwidth"])
        return {
            "one": np.array(one),
            "crossing": np.array(crossing),
            "fit": np.array(max(0, int((card["memory"] - weights) // inputs["cache"]))),
        }

    def tolerance(self, inputs, expected):
        return {name: 1e-9 * float(expected[name]) for name in ("one", "crossing")}


@task("ps09/prune_24", points=15)
class Prune24(Task):
    """2:4 sparsity: of every four neighbours in a row the two largest in magnitude are kept. Returned: the
    pruned matrix, the kept values, and their places 0 to 3 in the group. Ties: the earlier place is kept.
    """

    entry = "prune_24"
    arguments = ("w",)
    returns = {"pruned": "float32", "values": "float32", "places": "integers"}
    items = (
        Item("pruned", 3, title="The matrix with half of its numbers set to 0"),
        Item("draws", 4, title="Draws"),
        Item("stored", 8, title="As the hardware stores it: half the values, and two bits each"),
    )
    domain = {
        "rows": Whole(upto=65),
        "n": Whole(4, multiple=4, says=("a multiple of 4",)),
        "w": Values(
            "float32", PLAIN, "zeros", "signed zeros", "equal", "ties", "negative", "subnormal", "largest"
        ),
        "asked": Choice("pruned", "stored"),
    }
    corners = 10

    @staticmethod
    def matrix(rng, item, rows, cols, coarse=False, only=("pruned",)):
        w = rng.normal(size=(int(rows), int(cols))).astype(np.float32)
        return Case(f"{item}, {rows} x {cols}", {"w": np.round(w) if coarse else w}, item, only)

    def make_cases(self, rng):
        matrix = functools.partial(self.matrix, rng)
        stored = ("values", "places")
        return [
            matrix("pruned", 1, 4),
            matrix("pruned", rng.integers(3, 20), 4 * rng.integers(2, 20)),
            matrix("draws", 12, 24, True, ()),
            matrix("stored", 1, 8, only=stored),
            matrix("stored", rng.integers(3, 20), 4 * rng.integers(2, 20), only=stored),
        ]

    def fits(self, place):
        return place["rows"] * place["n"] <= 5000

    def at(self, rng, place):
        """Values that may have ties in a group go to the row on draws."""
        tied = place["w"] not in (PLAIN, "negative")
        item = "draws" if tied else place["asked"]
        only = ("pruned",) if item == "pruned" else ("values", "places") if item == "stored" else ()
        case = self.matrix(rng, item, place["rows"], place["n"], only=only)
        case.inputs["w"][:] = self.domain["w"].draw(rng, place["w"], case.inputs["w"].shape)
        return case

    def reference(self, inputs):
        rows, cols = inputs["w"].shape
        groups = inputs["w"].astype(np.float64).reshape(rows, cols // 4, 4)
        places = np.sort(np.argsort(-np.abs(groups), axis=2, kind="stable")[:, :, :2], axis=2)
        values = np.take_along_axis(groups, places, axis=2)
        pruned = np.zeros_like(groups)
        np.put_along_axis(pruned, places, values, axis=2)
        return {
            "pruned": pruned.reshape(rows, cols),
            "values": values.reshape(rows, cols // 2),
            "places": places.reshape(rows, cols // 2),
        }


@task("ps09/batch_server", points=15)
class BatchServer(Task):
    """The time at which each request is answered by a server with dynamic batching.

    The server starts a batch when it is free and either `most` requests wait or the oldest has waited
    `patience` seconds; the batch is the oldest requests that have arrived by then, at most `most`, and takes
    fixed + each * (their number) seconds.
    """

    entry = "batch_server"
    arguments = ("arrivals", "most", "patience", "fixed", "each")
    returns = {"done": "numbers"}
    items = (
        Item("one", 3, title="One at a time"),
        Item("busy", 5, title="A busy server: who waits goes together"),
        Item("patience", 7, title="A quiet server: waiting for company"),
    )
    domain = {
        "arrivals": Whole(upto=260),
        "most": Whole(says=("1 or more",), upto=300),
        "patience": Choice(0.0, 0.25, 0.5, 100.0),
        "come": Choice("apart", "several at once", "all at once"),
    }
    corners = 10

    @staticmethod
    def workload(rng, item, count, most, patience, gap, burst=0, quarters=False):
        gaps = rng.exponential(gap, int(count))
        gaps[count // 2 : count // 2 + burst] = 0.001
        arrivals = np.cumsum(gaps)
        if quarters:  # multiples of 1/4 s: some requests arrive exactly when a batch starts
            arrivals = np.cumsum(rng.integers(1, 3, int(count))) / 4
        inputs = {
            "arrivals": [float(t) for t in arrivals],
            "most": int(most),
            "patience": float(patience),
            "fixed": 0.05 if item == "one" else float(rng.uniform(0.03, 0.08)),
            "each": 0.01 if item == "one" else float(rng.uniform(0.005, 0.02)),
        }
        if quarters:
            inputs |= {"fixed": 0.25, "each": 0.125}
        return Case(
            f"{item}, {so_many(count, 'request')}, at most {most}, patience {patience:g} s", inputs, item
        )

    def make_cases(self, rng):
        workload = functools.partial(self.workload, rng)
        return [
            workload("one", 1, 1, 0.0, 1.0),
            workload("one", 20, 1, 0.0, 0.05),
            workload("busy", 40, 8, 0.0, 0.01),
            workload("busy", 60, 100, 0.02, 0.005),
            workload("patience", 30, 4, 0.1, 0.04, burst=9),
            workload("patience", 25, 6, 0.05, 0.03),
            workload("patience", 20, 3, 0.5, 0.3),
            workload("patience", 40, 5, 0.5, 0.0, quarters=True),
            workload("patience", 6, 3, 0.5, 0.01),  # the last batch is exactly full
        ]

    def at(self, rng, place):
        """For the row on patience times are multiples of 1/4 s: some arrive exactly when a batch starts."""
        most, patience = place["most"], place["patience"]
        alone = not patience and place["come"] == "apart"
        item = "patience" if not alone else "one" if most == 1 else "busy"
        case = self.workload(rng, item, place["arrivals"], most, patience, 0.03, quarters=not alone)
        if place["come"] != "apart":
            times = np.array(case.inputs["arrivals"])
            case.inputs["arrivals"] = (
                np.floor(times) if place["come"].startswith("several") else 0 * times
            ).tolist()
        return case

    def reference(self, inputs):
        arrivals, most = inputs["arrivals"], inputs["most"]
        free, first, done = 0.0, 0, []
        while first < len(arrivals):
            filled = arrivals[first + most - 1] if first + most <= len(arrivals) else math.inf
            start = max(free, min(filled, arrivals[first] + inputs["patience"]))
            batch = sum(1 for t in arrivals[first : first + most] if t <= start)
            free = start + inputs["fixed"] + inputs["each"] * batch
            done += [free] * batch
            first += batch
        return {"done": np.array(done)}

    def tolerance(self, inputs, expected):
        return {"done": 1e-9 * float(np.max(expected["done"]))}
