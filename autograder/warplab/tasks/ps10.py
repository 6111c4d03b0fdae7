"""Problem set 10, many GPUs: a ring all-reduce, data, tensor and pipeline parallelism, sharded optimiser
state, a model of scaling, and a hung run to debug.
"""

import functools

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import RanksTask, Task, task
from warplab.tasks.domain import Choice, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # of Adam in `zero_adam`
BUSIEST = "bytes sent by the busiest rank"


def ring_bytes(ranks, count, itemsize=8):
    """Bytes that the busiest rank sends in a ring all-reduce of `count` numbers: 2 (n - 1) pieces of
    ceil(count / n) numbers each.
    """
    return 2 * (ranks - 1) * -(-count // ranks) * itemsize


def least_bytes(ranks, count, itemsize=8):
    """A lower bound on the bytes that the busiest of `ranks` sends in any all-reduce of `count` numbers.

    One rank can know a sum after n - 1 messages, and all ranks after n - 1 more: 2 (n - 1) messages per
    number (Harary and Schwenk, The communication problem on graphs and digraphs, 1974), of which the busiest
    rank sends at least 1/n.
    """
    return 2 * (ranks - 1) / ranks * count * itemsize


@task("ps10/ring_all_reduce", points=15)
class RingAllReduce(RanksTask):
    """Every rank ends with the sum of all ranks' arrays."""

    entry = "ring_all_reduce"
    arguments = sharded = ("x",)
    rule = "this task is to write all_reduce from send and recv"
    returns = {"out": "float64"}
    items = (
        Item("even", 2, title="Arrays that divide evenly"),
        Item("uneven", 3, title="Any length, any number of ranks, also one"),
        Item("bytes", 10, "structure", "No rank sends more than the ring asks for, whatever the length"),
    )
    domain = {"ranks": Whole(upto=6), "count": Whole(upto=260)}

    @staticmethod
    def ring(rng, item, ranks, count):
        told = f"{item}, {so_many(ranks, 'rank')}, {so_many(count, 'number')}"
        return Case(told, {"x": [rng.normal(size=int(count)) for _ in range(ranks)]}, item)

    def make_cases(self, rng):
        ring = functools.partial(self.ring, rng)
        return [
            ring("even", 2, 8),
            ring("even", 4, 4 * rng.integers(2, 20)),
            ring("uneven", 3, 3 * rng.integers(4, 20) + 1),
            ring("uneven", 4, 2),
            ring("uneven", 1, 5),
            ring("bytes", 4, 4 * rng.integers(30, 60) + rng.integers(1, 4)),
            ring("bytes", 4, 5),
        ]

    def at(self, rng, place):
        ranks, count = place["ranks"], place["count"]
        return self.ring(rng, "even" if count % ranks == 0 else "uneven", ranks, count)

    def world(self, inputs):
        return len(inputs["x"])

    def reference_of(self, rank, inputs):
        return {"out": np.sum(inputs["x"], axis=0)}

    def tolerance_of(self, rank, inputs, expected):
        return {"out": sum_tolerance(self.world(inputs), np.abs(inputs["x"]).sum(axis=0), np.float64)}

    def bounds(self, inputs):
        """In each of the ring's two phases a rank sends all pieces but one: at most twice the array without
        its shortest piece. Padding five numbers to eight takes 1.5 times as many bytes: no points.
        """
        ranks, count = self.world(inputs), inputs["x"][0].size
        exact, least = 8.0 * 2 * (count - count // ranks), least_bytes(ranks, count)
        return {"bytes": Bound("ranks.bytes_of_one", exact, 1.5 * exact, BUSIEST, least)}


class Training(RanksTask):
    """A task whose ranks train one linear model, w = [w_0, w_1, ...], on rows x and y: error = mean of
    (x @ concatenate(w) - y)^2 over the rows of all ranks.
    """

    def world(self, inputs):
        return len(inputs["x"])

    def gradient(self, w, inputs):
        """The gradient of the error over the rows of all ranks, float64."""
        x, y = (np.concatenate(inputs[name]).astype(np.float64) for name in ("x", "y"))
        return 2 * x.T @ (x @ w - y) / len(x)


@task("ps10/data_parallel", points=15)
class DataParallel(Training):
    """Gradient descent by several ranks, each with its own rows; every rank returns the weights that a single
    process would compute.
    """

    entry = "data_parallel"
    arguments = ("w", "x", "y", "steps", "lr")
    sharded = ("x", "y")
    returns = {"out": "float64"}
    items = (
        Item("equal", 3, title="Ranks with equally many rows"),
        Item("ragged", 6, title="Ranks with different numbers of rows"),
        Item("bucket", 6, "structure", "One reduction for all layers, not one for each"),
    )
    domain = {
        "ranks": Whole(upto=4),
        "rows": Whole(0, upto=17, says=("perhaps none",)),
        "layers": Whole(upto=9),
        "steps": Whole(0, upto=5),
    }

    @staticmethod
    def run(rng, item, rows, layers, steps):
        sizes = [int(n) for n in rng.integers(1, 6, layers)]
        width = sum(sizes)
        truth = rng.normal(size=width)
        x = [rng.normal(size=(int(n), width)) for n in rows]
        inputs = {
            "w": [rng.normal(size=n) for n in sizes],
            "x": x,
            "y": [part @ truth + 0.1 * rng.normal(size=len(part)) for part in x],
            "steps": int(steps),
            "lr": float(rng.uniform(0.01, 0.05)),
        }
        return Case(
            f"{item}, {so_many(len(rows), 'rank')} with {', '.join(str(int(n)) for n in rows)} rows, "
            f"{so_many(layers, 'layer')}, {so_many(steps, 'step')}",
            inputs,
            item,
        )

    def make_cases(self, rng):
        run = functools.partial(self.run, rng)
        return [
            run("equal", [8, 8], 2, 3),
            run("equal", [5, 5, 5], 3, 2),
            run("ragged", [3, 9], 2, 3),
            run("ragged", rng.integers(1, 12, 3), 2, 2),
            run("ragged", [4, 0, 7], 2, 2),
            run("ragged", [2, 3], 3, 0),
            run("bucket", rng.permutation([4, 6, 9]), 8, 2),
        ]

    def fits(self, place):
        return place["ranks"] > 1 or place["rows"] > 0

    def at(self, rng, place):
        """`rows` at the last rank, and others elsewhere."""
        rows = [*(int(n) for n in rng.integers(1, 9, place["ranks"] - 1)), place["rows"]]
        return self.run(
            rng, "equal" if len(set(rows)) == 1 else "ragged", rows, place["layers"], place["steps"]
        )

    def reference_of(self, rank, inputs):
        w = np.concatenate(inputs["w"])
        for _ in range(inputs["steps"]):
            w = w - inputs["lr"] * self.gradient(w, inputs)
        return {"out": w}

    def tolerance_of(self, rank, inputs, expected):
        """float64 sums in any order; with small steps, no step amplifies the error of the one before."""
        return {"out": 1e-10 * (1 + np.abs(expected["out"]).max())}

    def bounds(self, inputs):
        """Full points: a ring sends 2 (n - 1) messages per rank and step, and once as many to count the rows.

        No points from 2 (n - 1) messages per layer and step on, the fewest if layers are reduced separately
        (to one rank and back). Lower bound: all rows are sent to one rank, and the weights back.
        """
        ranks = self.world(inputs)
        least = 2 * (ranks - 1)
        full = least * ranks * (inputs["steps"] + 1)
        zero = least * len(inputs["w"]) * inputs["steps"]
        return {"bucket": Bound("ranks.messages", full, zero, "messages", least)}


@task("ps10/tensor_parallel_mlp", points=15)
class TensorParallelMlp(RanksTask):
    """relu(x @ w1 + b1) @ w2 + b2 with the hidden layer divided among the ranks: each rank holds some columns
    of w1 with the same elements of b1 and rows of w2. x and b2 are the same on all ranks.
    """

    entry = "tensor_parallel_mlp"
    arguments = ("x", "w1", "b1", "w2", "b2")
    sharded = ("w1", "b1", "w2")
    returns = {"out": "float64"}
    items = (
        Item("right", 8, title="The result of the whole layer, on every rank"),
        Item("bytes", 7, "structure", "One all-reduce, of the result"),
    )
    domain = {
        "ranks": Whole(upto=4),
        "batch": Whole(upto=33),
        "width": Whole(upto=33),
        "mine": Whole(upto=17),
    }

    @staticmethod
    def layer(rng, item, ranks, batch, width, hidden):
        inputs = {
            "x": rng.normal(size=(int(batch), int(width))),
            "w1": [rng.normal(size=(int(width), int(n))) for n in hidden[:ranks]],
            "b1": [rng.normal(size=int(n)) for n in hidden[:ranks]],
            "w2": [rng.normal(size=(int(n), int(width))) for n in hidden[:ranks]],
            "b2": rng.normal(size=int(width)),
        }
        return Case(f"{item}, {so_many(ranks, 'rank')}, {batch} x {width}", inputs, item)

    def make_cases(self, rng):
        layer = functools.partial(self.layer, rng)
        return [
            layer("right", 2, 3, 4, [8, 8]),
            layer("right", 3, 2, 5, rng.integers(1, 9, 3)),
            layer("right", 1, 2, 3, [6]),
            layer("bytes", 4, 16, 16, [16, 16, 16, 16]),
        ]

    def at(self, rng, place):
        ranks = place["ranks"]
        hidden = [place["mine"], *rng.integers(1, 9, ranks - 1)]
        return self.layer(rng, "right", ranks, place["batch"], place["width"], hidden)

    def world(self, inputs):
        return len(inputs["w1"])

    def reference_of(self, rank, inputs):
        sums = inputs["x"] @ np.concatenate(inputs["w1"], axis=1) + np.concatenate(inputs["b1"])
        return {"out": np.maximum(sums, 0) @ np.concatenate(inputs["w2"], axis=0) + inputs["b2"]}

    def tolerance_of(self, rank, inputs, expected):
        w1, w2 = np.abs(np.concatenate(inputs["w1"], axis=1)), np.abs(np.concatenate(inputs["w2"], axis=0))
        hidden = np.abs(inputs["x"]) @ w1 + np.abs(np.concatenate(inputs["b1"]))
        terms = len(w1) + len(w2) + self.world(inputs) + 2
        return {"out": 2 * sum_tolerance(terms, hidden @ w2 + np.abs(inputs["b2"]), np.float64)}

    def bounds(self, inputs):
        """One ring all-reduce of the result; gathering the partial results, at one rank or at all, takes more
        than 1.5 times as many bytes. In this row each rank has as many columns of w1 as the batch has rows,
        so that sending factors of its partial result instead saves nothing.
        """
        shape = self.world(inputs), inputs["x"].size
        exact, least = ring_bytes(*shape), least_bytes(*shape)
        return {"bytes": Bound("ranks.bytes_of_one", exact, 1.5 * exact, BUSIEST, least)}


@task("ps10/zero_adam", points=15)
class ZeroAdam(RanksTask):
    """Adam with moments sharded over the ranks (ZeRO): each rank updates its own piece of the weights, and
    every rank returns all weights.

    The n pieces have equal lengths; the last ones are padded with zeros.

    g = mean of the ranks' gradients; m = 0.9 m + 0.1 g; v = 0.999 v + 0.001 g^2; w -= lr (m / (1 - 0.9^t)) /
    (sqrt(v / (1 - 0.999^t)) + 1e-8).
    """

    entry = "zero_adam"
    arguments = ("w", "gradients", "lr")
    sharded = ("gradients",)
    returns = {"out": "float64", "moments": "float64"}
    items = (
        Item("right", 6, title="The weights that Adam on one process would have"),
        Item("moments", 4, title="Each rank returns the moments of its own piece, and no others"),
        Item("bytes", 5, "structure", "As many bytes as an all-reduce, no more"),
    )
    domain = {
        "ranks": Whole(upto=5),
        "weights": Whole(upto=65),
        "steps": Whole(upto=5),
        "asked": Choice("right", "moments"),
    }

    @staticmethod
    def run(rng, item, ranks, count, steps, only):
        gradients = [rng.normal(size=(int(steps), int(count))) for _ in range(ranks)]
        inputs = {
            "w": rng.normal(size=int(count)),
            "gradients": gradients,
            "lr": float(rng.uniform(0.001, 0.1)),
        }
        return Case(
            f"{item}, {so_many(ranks, 'rank')}, {so_many(count, 'weight')}, {so_many(steps, 'step')}",
            inputs,
            item,
            tuple(f"{only}[{r}]" for r in range(ranks)) if only else (),
        )

    def make_cases(self, rng):
        run = functools.partial(self.run, rng)
        return [
            run("right", 2, 8, 3, "out"),
            run("right", 3, 3 * rng.integers(3, 9) + 1, 2, "out"),
            run("right", 1, 5, 2, "out"),
            run("right", 4, 2, 2, "out"),
            run("moments", 4, 12, 2, "moments"),
            run("moments", 3, 7, 3, "moments"),
            run("moments", 4, 2, 1, "moments"),  # two pieces are padding only
            run("bytes", 4, 48, 2, ""),
        ]

    def at(self, rng, place):
        item = place["asked"]
        only = "out" if item == "right" else "moments"
        return self.run(rng, item, place["ranks"], place["weights"], place["steps"], only)

    def world(self, inputs):
        return len(inputs["gradients"])

    def adam(self, inputs):
        w, m, v = inputs["w"], 0.0, 0.0
        for t, g in enumerate(np.mean(inputs["gradients"], axis=0), 1):
            m, v = BETA_1 * m + (1 - BETA_1) * g, BETA_2 * v + (1 - BETA_2) * g**2
            w = w - inputs["lr"] * (m / (1 - BETA_1**t)) / (np.sqrt(v / (1 - BETA_2**t)) + EPSILON)
        return w, m, v

    def reference_of(self, rank, inputs):
        w, m, v = self.adam(inputs)
        n = self.world(inputs)
        mine = [np.pad(part, (0, -len(w) % n)).reshape(n, -1)[rank] for part in (m, v)]
        return {"out": w, "moments": np.concatenate(mine)}

    def tolerance_of(self, rank, inputs, expected):
        """A gradient near 0 is divided by a number as small, which makes its rounding error visible; a step
        changes a weight by about lr at most.
        """
        return {"out": 1e-8 * inputs["lr"] + 1e-12, "moments": 1e-12}

    def bounds(self, inputs):
        """In every step each rank sends n - 1 pieces of the gradient and n - 1 pieces of the weights.

        Lower bound: weights are exchanged only after the last step.
        """
        shape, steps = (self.world(inputs), inputs["w"].size), len(inputs["gradients"][0])
        exact, least = ring_bytes(*shape) * steps, least_bytes(*shape) * (steps + 1) / 2
        return {"bytes": Bound("ranks.bytes_of_one", exact, 1.5 * exact, BUSIEST, least)}


@task("ps10/scaling_model", points=10)
class ScalingModel(Task):
    """Seconds per step on given numbers of GPUs, the efficiency of scaling, and the fastest number of GPUs.

    t(n) = compute / n + 2 (n - 1) / n * bytes / bandwidth + 2 (n - 1) latency, and t(1) = compute.
    efficiency = t(1) / (n t(n)).
    """

    entry = "scaling_model"
    arguments = ("gpus", "compute", "gradient_bytes", "bandwidth", "latency")
    returns = {"seconds": "numbers", "efficiency": "numbers", "best": "integers"}
    items = (
        Item("seconds", 1, title="Seconds of a step"),
        Item("efficiency", 1, title="Share of perfect scaling"),
        Item("best", 8, title="The fastest number of GPUs, and of equal ones the smallest"),
    )
    domain = {
        "gpus": Whole(upto=17),
        "order": Choice("rising", "falling", "in any order", said=False),
        "latency": Choice(0.0, 1e-6, 1e-3),
        "compute": Choice("much", "little", "a draw", "nearly a draw"),
        "asked": Choice("seconds", "best"),
    }
    corners = 12

    @staticmethod
    def cluster(rng, item, latency, compute_per_transfer=None, gpus=None):
        inputs = {
            "gpus": gpus or [2**k for k in range(int(rng.integers(4, 12)))],
            "compute": float(rng.uniform(0.05, 2)),
            "gradient_bytes": float(rng.integers(10**7, 10**10)),
            "bandwidth": float(rng.uniform(1e10, 4.5e11)),
            "latency": latency,
        }
        if compute_per_transfer:
            inputs["compute"] = compute_per_transfer * inputs["gradient_bytes"] / inputs["bandwidth"]
        return Case(f"{item}, up to {max(inputs['gpus'])} GPUs", inputs, item, (item,))

    def make_cases(self, rng):
        cluster = functools.partial(self.cluster, rng)

        def drawn():
            """Numbers of GPUs in random order: 1, and seven others that need not be powers of two."""
            return [int(n) for n in rng.permutation(np.append(3 * rng.permutation(60)[:7] + 5, 1))]

        tie = cluster("best", 0.0, gpus=[int(n) for n in 2 ** rng.permutation(np.arange(1, 7))])
        transfer = 2.0 ** int(rng.integers(-8, -3))
        tie.inputs.update(gradient_bytes=transfer * 2.0**35, bandwidth=2.0**35, compute=2 * transfer)
        return [
            *(cluster("seconds", latency) for latency in (0.0, 1e-5)),
            cluster("seconds", 1e-4, gpus=drawn()),
            *(cluster("efficiency", 1e-5, gpus=gpus) for gpus in (None, drawn())),
            *(cluster("best", latency) for latency in (1e-3, 1e-6)),
            cluster("best", 1e-4, gpus=drawn()),
            tie,  # compute = 2 bytes / bandwidth, latency 0: t(n) is equal for every n
            cluster(
                "best", 1e-6, float(rng.uniform(1.2, 1.8))
            ),  # one GPU is the fastest if compute < 2 bytes / bandwidth
        ]

    def fits(self, place):
        return not place["compute"].endswith("a draw") or (place["latency"] == 0 and place["asked"] == "best")

    def at(self, rng, place):
        gpus = 1 + rng.permutation(60)[: place["gpus"]]
        gpus = np.sort(gpus)[::-1] if place["order"] == "falling" else gpus
        gpus = np.sort(gpus) if place["order"] == "rising" else gpus
        ratio = {"much": 9.0, "little": 1.5, "a draw": 2.0, "nearly a draw": 2 + 2.0**-20}[place["compute"]]
        case = self.cluster(rng, place["asked"], place["latency"], ratio, [int(n) for n in gpus])
        if place["compute"] == "a draw":  # powers of two, so that t(n) is exact
            counts = rng.permutation(sorted({2 ** int(n % 7) for n in gpus}))
            case.inputs.update(
                gpus=[int(n) for n in counts], gradient_bytes=2.0**30, bandwidth=2.0**35, compute=2.0**-4
            )
        return case

    def reference(self, inputs):
        n = np.array(inputs["gpus"], float)
        seconds = (
            inputs["compute"] / n
            + 2 * (n - 1) / n * inputs["gradient_bytes"] / inputs["bandwidth"]
            + 2 * (n - 1) * inputs["latency"]
        )
        return {
            "seconds": seconds,
            "efficiency": inputs["compute"] / (n * seconds),
            "best": np.array(int(n[seconds == seconds.min()].min())),
        }

    def tolerance(self, inputs, expected):
        return {name: 1e-9 * np.abs(expected[name]) for name in ("seconds", "efficiency")}


@task("ps10/pipeline", points=15)
class Pipeline(RanksTask):
    """tanh(... tanh(x @ w_0) ... @ w_last) with one layer per rank, for a sequence of micro-batches.

    The first rank has the micro-batches. The last rank returns all results, the others an empty array. Each
    also returns the ticks at which it works, if a layer takes one tick per micro-batch and each rank starts a
    micro-batch as soon as it has arrived.
    """

    entry = "pipeline"
    arguments = sharded = ("x", "w")
    returns = {"out": "numbers", "ticks": "integers"}
    items = (
        Item("right", 6, title="The results, at the last rank"),
        Item("ticks", 5, title="Who works when"),
        Item("bytes", 4, "structure", "One micro-batch at a time to the next rank, and nowhere else"),
    )
    domain = {
        "ranks": Whole(upto=5),
        "micro": Whole(upto=9),
        "batch": Whole(upto=9),
        "width": Whole(upto=9),
        "asked": Choice("right", "ticks"),
    }

    @staticmethod
    def pipeline(rng, item, ranks, micro, only, sizes=None):
        drawn = (8, 8) if item == "bytes" else rng.integers(2, 6, 2)
        batch, width = (int(n) for n in (sizes or drawn))
        x = [rng.normal(size=(micro, batch, width))] + [np.zeros((0, batch, width)) for _ in range(ranks - 1)]
        w = [rng.normal(size=(width, width)) / np.sqrt(width) for _ in range(ranks)]
        names = tuple(f"{only}[{r}]" for r in range(ranks)) if only else ()
        return Case(
            f"{item}, {so_many(ranks, 'rank')}, {micro} micro-batch{'' if micro == 1 else 'es'}",
            {"x": x, "w": w},
            item,
            names,
        )

    def make_cases(self, rng):
        pipeline = functools.partial(self.pipeline, rng)
        return [
            pipeline("right", 2, 3, "out"),
            pipeline("right", 4, int(rng.integers(1, 7)), "out"),
            pipeline("right", 1, 2, "out"),
            pipeline("ticks", 3, 5, "ticks"),
            pipeline("ticks", 4, 1, "ticks"),
            pipeline("bytes", 4, 8, ""),
        ]

    def at(self, rng, place):
        item, sizes = place["asked"], (place["batch"], place["width"])
        only = "out" if item == "right" else "ticks"
        return self.pipeline(rng, item, place["ranks"], place["micro"], only, sizes)

    def world(self, inputs):
        return len(inputs["w"])

    def reference_of(self, rank, inputs):
        out, micro = inputs["x"][0], len(inputs["x"][0])
        for w in inputs["w"]:
            out = np.tanh(out @ w)
        last = rank == self.world(inputs) - 1
        return {"out": out if last else np.zeros(0), "ticks": rank + np.arange(micro)}

    def tolerance_of(self, rank, inputs, expected):
        return {"out": 1e-12 * self.world(inputs)}

    def wrong_result(self, case, outcome):
        """A rank only claims its ticks, so the number of messages must show one micro-batch at a time."""
        hops = (self.world(case.inputs) - 1) * len(case.inputs["x"][0])
        sent = outcome.counters.get("ranks.messages", hops) if outcome and not outcome.error else hops
        wrong = super().wrong_result(case, outcome)
        if wrong is None and case.item != "right" and sent < hops:
            return (
                f"what is returned is right, and {number(sent)} messages do not bear it out: micro-batches "
                f"that go on one at a time take {number(hops)}"
            )
        return wrong

    def bounds(self, inputs):
        """Each rank but the last sends every micro-batch once; 64 bytes more allow sending their number."""
        least = (self.world(inputs) - 1) * inputs["x"][0].nbytes
        exact = least + 64 * (self.world(inputs) - 1)
        return {"bytes": Bound("ranks.bytes", exact, 1.25 * exact, "bytes sent by all ranks", least)}


@task("ps10/hung_run", points=10)
class HungRun(RanksTask):
    """One epoch over all ranks' rows, `batch` rows of each rank per step, with the error of each step at rank
    0. In the program to debug, one rank calls a collective alone, ranks with fewer rows leave the loop
    early, and the gradient is averaged twice.

    Step k takes rows k * batch to (k + 1) * batch of each rank that has such rows: error = mean of (x @ w -
    y)^2 over all of them, w -= lr * its gradient.
    """

    entry = "hung_run"
    arguments = ("w", "x", "y", "batch", "lr")
    sharded = ("x", "y")
    returns = {"out": "float64", "errors": "numbers"}
    items = (
        Item("equal", 2, title="Ranks with equally many rows: it ends, with one process's weights"),
        Item("uneven", 4, title="Ranks with different numbers of rows, also none"),
        Item("errors", 2, title="Rank 0 has the error of every step"),
        Item("bytes", 2, "structure", "Sums go between the ranks, and no measurements"),
    )
    domain = {
        "ranks": Whole(upto=4),
        "rows": Whole(0, upto=17, says=("perhaps none",)),
        "batch": Whole(upto=9),
        "asked": Choice("out", "errors"),
    }

    @staticmethod
    def epoch(rng, item, rows, batch, only="out"):
        rows, width = [int(n) for n in rows], 9 if item == "bytes" else int(rng.integers(2, 6))
        truth = rng.normal(size=width)
        x = [rng.normal(size=(n, width)) for n in rows]
        inputs = {
            "w": rng.normal(size=width),
            "x": x,
            "y": [part @ truth + 0.1 * rng.normal(size=len(part)) for part in x],
            "batch": int(batch),
            "lr": float(rng.uniform(0.02, 0.1)),
        }
        told = f"{item}, {so_many(len(rows), 'rank')} with {', '.join(map(str, rows))} rows, {batch} a step"
        names = tuple(f"{only}[{rank}]" for rank in range(len(rows))) if only else ()
        return Case(told, inputs, item, names)

    def make_cases(self, rng):
        epoch = functools.partial(self.epoch, rng)
        return [
            epoch("equal", [6, 6], 2),
            epoch("equal", [5, 5, 5], 3),
            epoch("uneven", [3, 8], 2),
            epoch("uneven", [4, 0, 7], 3),
            epoch("uneven", rng.integers(1, 12, 3), 4),
            epoch("uneven", [0, 0], 2),
            epoch("errors", [6, 6, 6], 2, "errors"),
            epoch("errors", [2, 5, 9], 2, "errors"),
            epoch("bytes", [32, 32, 32, 32], 16, ""),
        ]

    def fits(self, place):
        return place["rows"] <= 6 * place["batch"]

    def at(self, rng, place):
        """`rows` at the last rank, and others elsewhere."""
        rows = [*(int(n) for n in rng.integers(0, 9, place["ranks"] - 1)), place["rows"]]
        item = "errors" if place["asked"] == "errors" else "equal" if len(set(rows)) == 1 else "uneven"
        return self.epoch(rng, item, rows, place["batch"], place["asked"])

    def world(self, inputs):
        return len(inputs["x"])

    @staticmethod
    def steps(inputs):
        """(weights after all steps, the error of each)."""
        w, errors, batch = inputs["w"], [], inputs["batch"]
        for first in range(0, max(map(len, inputs["y"])), batch):
            x, y = (
                np.concatenate([part[first : first + batch] for part in inputs[name]]) for name in ("x", "y")
            )
            residual = x @ w - y
            errors.append(np.mean(residual**2))
            w = w - inputs["lr"] * 2 * x.T @ residual / len(y)
        return w, np.array(errors)

    def reference_of(self, rank, inputs):
        w, errors = self.steps(inputs)
        return {"out": w, "errors": errors if rank == 0 else np.zeros(0)}

    def tolerance_of(self, rank, inputs, expected):
        """float64 sums in any order."""
        w, errors = self.steps(inputs)
        return {
            "out": 1e-10 * (1 + np.abs(w).max()),
            "errors": 1e-10 * (1 + errors.max(initial=0)) if rank == 0 else 0.0,
        }

    def bounds(self, inputs):
        """Per step ring all-reduces of the gradient and of two numbers, and of one number before the first;
        full points up to 1.3 times that. Sending its rows once to one other rank takes about five times
        as many bytes: no points. Lower bound: an all-reduce of one gradient, needed for the last weights.
        """
        ranks, width, batch = self.world(inputs), inputs["w"].size, inputs["batch"]
        rows = max(map(len, inputs["y"]))
        sums = ring_bytes(ranks, width) + 2 * ring_bytes(ranks, 1)
        full = 1.3 * (-(-rows // batch) * sums + ring_bytes(ranks, 1))
        zero = 8 * (width + 1) * rows
        return {"bytes": Bound("ranks.bytes_of_one", full, zero, BUSIEST, least_bytes(ranks, width))}
