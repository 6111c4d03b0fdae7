"""Problem set 11, choosing hardware: a card for a job, the price of a token, checkpoints on spot machines,
resuming from them, and autoscaling of replicas.
"""

import functools
import json
import math

import numpy as np

from warplab.models.miniature import flat, fresh, one_step
from warplab.tasks.declaration import Task, task
from warplab.tasks.domain import Choice, Whole
from warplab.tasks.rubric import Case, Item, so_many

TOLERANCE = 0.1  # of the autoscaler: Kubernetes' documented default


@task("ps11/pick_gpu", points=15)
class PickGpu(Task):
    """The index of the card with the best ratio of performance to price among those with `need` bytes.

    "inference": bandwidth / price. "training": bf16 / price. Ties: the cheaper card. If no card fits: -1.
    """

    entry = "pick_gpu"
    arguments = ("cards", "need", "stage")
    returns = {"card": "integers"}
    items = (
        Item("inference", 5, title="For inference: bandwidth for each dollar"),
        Item("training", 5, title="For training: arithmetic for each dollar"),
        Item("fits", 5, title="What does not fit is no bargain"),
    )
    domain = {
        "cards": Whole(0, upto=17, says=("-1 if none is large enough",)),
        "need": Choice("any", "the memory of one", "a byte more than any has"),
        "stage": Choice("inference", "training", said=True),
        "draw": Choice("none", "the cheaper comes first", "the cheaper comes last"),
    }
    corners = 10

    @staticmethod
    def drawn(rng, count):
        return [
            {
                "name": f"card {k}",
                "memory": int(rng.integers(16, 200)) * 10**9,
                "bandwidth": float(rng.integers(300, 8000)) * 1e9,
                "bf16": float(rng.integers(60, 2500)) * 1e12,
                "price": float(rng.integers(40, 1200)) / 100,
            }
            for k in range(count)
        ]

    def at(self, rng, place):
        """For a tie, two cards are added, one with twice the performance and twice the price of the other."""
        cards, stage = self.drawn(rng, place["cards"]), place["stage"]
        if place["draw"] != "none" and cards:
            first = {"memory": 300 * 10**9, "bandwidth": 2.0**45, "bf16": 2.0**53, "price": 2.0}
            twin = first | {key: 2 * first[key] for key in ("bandwidth", "bf16", "price")}
            cards += [first, twin] if place["draw"] == "the cheaper comes first" else [twin, first]
        memory = [card["memory"] for card in cards] or [10**9]
        need = {"any": min(memory) // 2, "the memory of one": int(rng.choice(memory))}
        inputs = {"cards": cards, "need": need.get(place["need"], max(memory) + 1), "stage": stage}
        fits = not cards or inputs["need"] > min(memory) or place["draw"] != "none"
        item = "fits" if fits else stage
        if fits:  # the two ratios are tested in the other rows
            for card in cards:
                card["bf16"] = 256 * card["bandwidth"]
        return Case(
            f"{item}, {stage}, {so_many(len(cards), 'card')}, {inputs['need'] / 1e9:.0f} GB", inputs, item
        )

    def make_cases(self, rng):
        drawn = functools.partial(self.drawn, rng)
        picked = {}  # by rubric row, so that no index is the answer twice

        def pick(item, stage, need, count=6, cards=None):
            known = picked.setdefault(item, set())
            inputs = {"cards": drawn(count) if cards is None else cards, "need": int(need), "stage": stage}
            while (
                cards is None and int(self.reference(inputs)["card"]) in self.mistaken(inputs, item) | known
            ):
                inputs["cards"] = drawn(count)
            known.add(int(self.reference(inputs)["card"]))
            return Case(f"{item}, {stage}, {need / 1e9:.0f} GB", inputs, item)

        (first,) = drawn(1)
        # The second has a ratio larger by a thousandth, and a higher price.
        close = [first | {"memory": 20 * 10**9}, first | {"memory": 20 * 10**9, "price": 2 * first["price"]}]
        close[1] |= {key: 2.002 * first[key] for key in ("bandwidth", "bf16")}
        tie = [
            first,
            first | {"price": first["price"] / 2, "bf16": first["bf16"] / 2},
            first | {"memory": 10**9, "bf16": 1e18},
        ]
        return [
            *(pick("inference", "inference", need) for need in (14e9, 7e9)),
            *(pick("training", "training", need) for need in (14e9, 7e9)),
            pick("fits", "inference", 250e9),
            pick("fits", "training", 120e9, 12),
            pick("fits", "training", first["memory"], cards=tie),
            pick("fits", "inference", 14e9, cards=close),
            pick("fits", "inference", 14e9, cards=[]),
            pick(
                "fits",
                "training",
                first["memory"],
                cards=[tie[2], first | {"bf16": first["bf16"] / 4}, first],
            ),
        ]

    @staticmethod
    def mistaken(inputs, item):
        """The cards that common mistakes pick; a case whose answer is one of them would not detect these."""
        cards, limiting, other = (
            inputs["cards"],
            *(("bandwidth", "bf16") if inputs["stage"] == "inference" else ("bf16", "bandwidth")),
        )
        fitting = [n for n, card in enumerate(cards) if card["memory"] >= inputs["need"]]
        cheapest = min(fitting, key=lambda n: cards[n]["price"], default=None)
        if item == "fits":
            return {cheapest, max(range(len(cards)), key=lambda n: cards[n][limiting] / cards[n]["price"])}
        return {
            cheapest,
            max(fitting, key=lambda n: cards[n][limiting]),
            max(fitting, key=lambda n: cards[n][other] / cards[n]["price"]),
        }

    def reference(self, inputs):
        limiting = {"inference": "bandwidth", "training": "bf16"}[inputs["stage"]]
        fitting = [n for n, card in enumerate(inputs["cards"]) if card["memory"] >= inputs["need"]]
        best = max(
            fitting,
            key=lambda n: (
                inputs["cards"][n][limiting] / inputs["cards"][n]["price"],
                -inputs["cards"][n]["price"],
            ),
            default=-1,
        )
        return {"card": np.array(best)}


@task("ps11/cost_per_token", points=20)
class CostPerToken(Task):
    """Tokens per second and dollars per million tokens of a batch that decodes at a share of the roofline.

    A step reads the weights once and each sequence's cache, and does 2 FLOP per parameter and sequence; it
    takes the longer of the two times, at `share` of the card's bandwidth and peak. tokens/s = batch / step;
    dollars = price / 3600 / tokens/s * 1e6.
    """

    entry = "cost_per_token"
    arguments = ("card", "parameters", "number", "cache", "batch", "share")
    returns = {"tokens": "numbers", "dollars": "numbers"}
    items = (
        Item("one", 3, title="A single request"),
        Item("batch", 5, title="Batches of any size: the weights are read once for all"),
        Item("compute", 8, title="Batches so large that arithmetic is short"),
        Item("dollars", 4, title="Dollars for a million tokens"),
    )
    domain = {
        "batch": Whole(upto=66_000),
        "cache": Choice(0, 1000, 10**8),
        "number": Choice(2, 1, 0.5),
        "asked": Choice("tokens", "dollars"),
    }

    @staticmethod
    def served(rng, item, batch, only="tokens", cache=None):
        card = {
            "bandwidth": float(rng.integers(300, 4000)) * 1e9,
            "bf16": float(rng.integers(1000, 2500)) * 1e12,
            "price": float(rng.integers(40, 1200)) / 100,
        }
        inputs = {
            "card": card,
            "parameters": int(rng.integers(1, 70)) * 10**9,
            "number": float(rng.choice([2.0, 1.0, 0.5])),
            "cache": int(rng.integers(1, 500)) * 10**6 if cache is None else cache,
            "batch": int(batch),
            "share": float(rng.uniform(0.3, 0.9)),
        }
        return Case(
            f"{item}, {inputs['parameters'] / 1e9:.0f} B parameters, batch of {batch}",
            inputs,
            item,
            (only,),
        )

    def make_cases(self, rng):
        """With small caches a batch becomes compute-bound between 62 requests (10^15 FLOP/s, 4 TB/s, half a
        byte per weight) and 8,333, depending on the card that is drawn.
        """

        served = functools.partial(self.served, rng)
        return [
            served("one", 1),
            served("one", 1, cache=0),
            served("batch", int(rng.integers(4, 20))),
            served("batch", int(rng.integers(20, 60))),
            served("batch", 20_000, cache=1000),
            served("batch", 20_000, cache=int(rng.integers(300, 900)) * 10**6),  # the caches dominate
            served("compute", 20_000, cache=1000),
            served("dollars", 1, "dollars"),
            served("dollars", 20_000, "dollars", cache=1000),
            served("dollars", int(rng.integers(8, 60)), "dollars"),
        ]

    def at(self, rng, place):
        """Compute-bound if the batch is large and its caches are small: see make_cases."""
        batch, cache = place["batch"], place["cache"]
        only = place["asked"]
        compute = batch > 9000 and cache < 10**6
        item = "dollars" if only == "dollars" else "one" if batch == 1 else "compute" if compute else "batch"
        case = self.served(rng, item, batch, only, cache)
        case.inputs["number"] = place["number"]
        return case

    def reference(self, inputs):
        card, share = inputs["card"], inputs["share"]
        moving = (inputs["parameters"] * inputs["number"] + inputs["batch"] * inputs["cache"]) / (
            share * card["bandwidth"]
        )
        computing = 2 * inputs["parameters"] * inputs["batch"] / (share * card["bf16"])
        tokens = inputs["batch"] / max(moving, computing)
        return {"tokens": np.array(tokens), "dollars": np.array(card["price"] / 3600 / tokens * 1e6)}

    def tolerance(self, inputs, expected):
        return {name: 1e-9 * float(value) for name, value in expected.items()}


@task("ps11/spot_interval", points=20)
class SpotInterval(Task):
    """The checkpoint interval on a spot machine that is interrupted every `between` hours on average, the
    share of the time that is lost, and the price of an hour of useful work.

    interval = sqrt(2 * save * between) (Young 1974), lost = save / interval + interval / (2 between) +
    restart / between, at most 1; cost = price / (1 - lost), infinite if lost is 1. Times in hours.
    """

    entry = "spot_interval"
    arguments = ("save", "between", "restart", "price")
    returns = {"interval": "numbers", "lost": "numbers", "cost": "numbers"}
    items = (
        Item("interval", 4, title="The best interval"),
        Item("lost", 8, title="The share of the time that is lost"),
        Item("cost", 8, title="Dollars for an hour of work that stays"),
    )
    domain = {
        "save": Choice(0.01, 0.5, 3.0),
        "between": Choice(0.5, 4.0, 400.0),
        "restart": Choice(0.0, 0.1, 1.0),
        "asked": Choice("interval", "lost", "cost"),
    }
    corners = 9

    @staticmethod
    def machine(rng, item, save, between, restart, only):
        inputs = {
            "save": float(save),
            "between": float(between),
            "restart": float(restart),
            "price": float(rng.integers(50, 900)) / 100,
        }
        return Case(
            f"{item}, saving {save * 60:.1f} min, {between:.1f} h between interruptions",
            inputs,
            item,
            (only,),
        )

    def make_cases(self, rng):
        machine = functools.partial(self.machine, rng)

        save, between = rng.uniform(0.005, 0.05, 3), rng.uniform(3, 40, 3)
        return [
            *(machine("interval", save[k], between[k], 0.1, "interval") for k in range(2)),
            *(machine("lost", save[k], between[k], rng.uniform(0.05, 0.3), "lost") for k in range(3)),
            machine("interval", 2.0, rng.uniform(1, 3), 1.0, "interval"),  # an interval longer than `between`
            machine("lost", 2.0, 1.0, 1.0, "lost"),
            *(machine("cost", save[k], between[k], rng.uniform(0.05, 0.3), "cost") for k in range(2)),
            machine("cost", 2.0, 1.0, 1.0, "cost"),
            machine("cost", 2.0, 4.0, 0.0, "cost"),  # lost is exactly 1
        ]

    def at(self, rng, place):
        return self.machine(
            rng, place["asked"], place["save"], place["between"], place["restart"], place["asked"]
        )

    def reference(self, inputs):
        save, between = inputs["save"], inputs["between"]
        interval = math.sqrt(2 * save * between)
        lost = min(1.0, save / interval + interval / (2 * between) + inputs["restart"] / between)
        cost = inputs["price"] / (1 - lost) if lost < 1 else math.inf
        return {
            name: np.array(value) for name, value in zip(self.returns, (interval, lost, cost), strict=True)
        }

    def tolerance(self, inputs, expected):
        return {
            name: 1e-9 * float(value) if math.isfinite(value) else 0.0 for name, value in expected.items()
        }


@task("ps11/resume", points=20)
class Resume(Task):
    """Resume from the newest intact checkpoint and run to step `steps`, with the results of a run that was
    never interrupted.

    saves: texts, oldest first, each json.dumps of a state; a machine that dies while saving leaves a
    truncated one. Returned: the step resumed from, the losses from there on, the last weights, and the last
    state as the numbers of `flat`.
    """

    entry = "resume"
    arguments = ("saves", "steps")
    returns = {"begun": "integers", "losses": "numbers", "w": "numbers", "save": "numbers"}
    items = (
        Item("fresh", 5, title="A run without a save begins at the beginning"),
        Item("middle", 8, title="A run that goes on gives the same numbers, to the last bit"),
        Item("torn", 7, title="A torn save is passed over"),
    )
    domain = {
        "saves": Whole(0, upto=5, says=("if there is none",)),
        "torn": Choice(0, 1, 3),
        "more": Whole(0, upto=17, says=("step number `steps`",)),
        "first": Choice("whole", "torn"),
    }
    corners = 8

    @staticmethod
    def run(rng, item, saved, torn, steps, between=()):
        """torn: truncated texts at the end. between: len(between) of them before each intact one."""
        texts, state = [], fresh()
        for step in range(max([0, *saved]) + 1):
            if step in saved:
                texts += [json.dumps(state)[: int(rng.integers(1, 30))] for _ in between]
                texts.append(json.dumps(state))
            state = one_step(state)[0]
        for _ in range(torn):
            whole = json.dumps(one_step(state)[0])
            texts.append(whole[: int(rng.integers(0, len(whole) - 1))])
        broken = torn + len(saved) * len(between)
        return Case(
            f"{item}, {so_many(len(texts), 'text')}, {broken} torn, to step {steps}",
            {"saves": texts, "steps": int(steps)},
            item,
        )

    def make_cases(self, rng):
        run = functools.partial(self.run, rng)

        at = sorted(int(n) for n in rng.integers(5, 40, 3))
        return [
            run("fresh", [], 0, 12),
            run("middle", [at[0]], 0, at[0] + 20),
            run("middle", at, 0, 60),
            run("middle", [30], 0, 30),
            run("torn", at, 1, 50),
            run("torn", [at[1]], 2, 45),
            run("torn", at, 0, 50, between=(1,)),
            run("torn", at, int(rng.integers(4, 7)), 50, between=(1, 2)),
            run("torn", [], 1, 9),
            run("fresh", [], 0, int(rng.integers(13, 30))),
        ]

    def at(self, rng, place):
        saved = sorted(int(n) for n in 1 + rng.permutation(30)[: place["saves"]])
        between = (1,) if saved and place["first"] == "torn" else ()
        item = "torn" if between or place["torn"] else "middle" if saved else "fresh"
        return self.run(rng, item, saved, place["torn"], max([0, *saved]) + place["more"], between)

    def reference(self, inputs):
        state, losses = fresh(), []
        for text in reversed(inputs["saves"]):
            try:
                state = json.loads(text)
                break
            except ValueError:
                continue
        begun = state["step"]
        while state["step"] < inputs["steps"]:
            state, loss = one_step(state)
            losses.append(loss)
        return {
            "begun": np.array(begun),
            "losses": np.array(losses),
            "w": np.array(state["w"]),
            "save": np.array(flat(state)),
        }


@task("ps11/autoscale", points=20)
class Autoscale(Task):
    """Replicas over time by the rule of Kubernetes' horizontal autoscaler.

    At every tick: metric = load / replicas, wanted = ceil(replicas * metric / target), or the present number
    if metric / target is within 0.1 of 1; clamped to [least, most]. Scaling up is immediate; scaling down
    goes only to the largest number wanted in the last `window` ticks, this one included. Returned: the
    replicas after each tick.
    """

    entry = "autoscale"
    arguments = ("loads", "target", "least", "most", "window")
    returns = {"replicas": "integers"}
    items = (
        Item("up", 4, title="A load that rises"),
        Item("tolerance", 5, title="Small changes are left alone"),
        Item("down", 6, title="A load that falls"),
        Item("limits", 5, title="The least and the most"),
    )
    domain = {
        "loads": Whole(upto=65),
        "window": Whole(upto=33),
        "least": Whole(upto=9),
        "more": Whole(0, upto=65, says=("held between `least` and `most`",)),
        "load": Choice("any", "none", "on the target"),
    }
    corners = 10

    @staticmethod
    def scaled_case(item, loads, target=10.0, least=1, most=100, window=1):
        """A case; `loads` are given for a target of 10 and scaled to `target`."""
        inputs = {
            "loads": [float(load) * target / 10 for load in loads],
            "target": float(target),
            "least": int(least),
            "most": int(most),
            "window": int(window),
        }
        return Case(f"{item}, {so_many(len(inputs['loads']), 'tick')}, window {window}", inputs, item)

    def make_cases(self, rng):
        scaled_case = self.scaled_case

        def for_replicas(*counts):
            """Loads for which these numbers of replicas are wanted, outside the tolerance, which is tested in
            a row of its own.
            """
            return 10 * np.array(counts) - rng.uniform(5.5, 9.5, len(counts))

        rising = [1]
        while rising[-1] < 60:
            rising.append(math.ceil(1.25 * rising[-1]) + int(rng.integers(1, 4)))
        few = int(rng.integers(4, 10))
        steady = 10 * int(rng.integers(4, 10))  # the load of steady / 10 replicas
        return [
            scaled_case("up", for_replicas(*rising)),
            scaled_case("up", [5, 55, 300, 410], target=40),
            scaled_case("tolerance", [100, 104, 109, 96, 91, 100, 112, 109, 88]),
            scaled_case("down", [200, 150, 100, 60, 30, 10, 5, 5], window=3),
            scaled_case(
                "down", for_replicas(40, 27, 16, 50, 31, 12, 8, 4, 2, 1, 23, 9, 5, 3, 1), target=2.5, window=6
            ),
            scaled_case(
                "limits",
                for_replicas(30, 50, 15, 9, 4, 2, 1, 1, 3, 60, 10, 1, 1, 1),
                least=4,
                most=22,
                window=4,
            ),
            scaled_case("limits", [0, 0, 1000, 0, 0, 0], least=2, most=7, window=2),
            # The first number of replicas is `least`, so that the first load is within the tolerance.
            scaled_case("tolerance", [10.6 * few, 15 * few], least=few, most=20),
            scaled_case("tolerance", [50, *rng.integers(46, 55, 12)]),
            scaled_case("tolerance", [400, 439.8, 360.2, 440.2]),  # just within a tenth, and just beyond it
            # A tick within the tolerance counts in the window, too, with the present number.
            scaled_case("tolerance", [steady, steady / 2, steady, steady / 2, steady / 2], window=3),
            scaled_case("tolerance", [steady, steady + 1, steady / 2], window=3),
        ]

    def at(self, rng, place):
        """With a target of 8, a power of two, the division by the target is exact."""
        count, least = place["loads"], place["least"]
        inputs = {"target": 8.0, "least": least, "most": least + place["more"], "window": place["window"]}
        most, unit = {"any": (560, 1), "none": (1, 1), "on the target": (60, 8)}[place["load"]]
        loads = inputs["loads"] = []
        while len(loads) < count:
            loads.append(float(unit * rng.integers(most)))
            if not self.is_clear(inputs):
                loads.pop()
        told = f"limits, {so_many(count, 'tick')}, {least} to {inputs['most']}, window {inputs['window']}"
        return Case(told, inputs, "limits")

    def is_clear(self, inputs):
        """Whether rounding cannot change the result: no ratio at the tolerance, and both ceils agree."""
        before = [inputs["least"], *self.reference(inputs)["replicas"].tolist()]
        for replicas, load in zip(before, inputs["loads"], strict=False):
            ratio = load / replicas / inputs["target"]
            whole = math.ceil(replicas * ratio) == math.ceil(load / inputs["target"])
            if abs(abs(ratio - 1) - TOLERANCE) < 1e-9 or not whole:
                return False
        return True

    def reference(self, inputs):
        replicas, history, out = inputs["least"], [], []
        for load in inputs["loads"]:
            ratio = load / replicas / inputs["target"]
            wanted = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(replicas * ratio)
            wanted = min(max(wanted, inputs["least"]), inputs["most"])
            history = [*history, wanted][-inputs["window"] :]
            replicas = wanted if wanted > replicas else min(replicas, max(history))
            out.append(replicas)
        return {"replicas": np.array(out)}
