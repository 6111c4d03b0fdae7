"""Problem set 3, serial and parallel: what must wait, and four ways to add up while waiting as little as
possible, and hours whose rain gets lost: a program to mend.
"""

import functools
from dataclasses import replace

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, DriverTask, KernelTask, Task, task
from warplab.tasks.domain import Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many

BLOCK = 256
WARPS = BLOCK // 32


@task("ps03/amdahl_fit", points=11)
class AmdahlFit(Task):
    """The serial share of a job from timings with n workers, and the speedup that no number of workers will
    pass.

    Least squares of the median seconds against 1/n: t = a + b / n, share = a / (a + b) held within [0, 1],
    limit = 1 / share.
    """

    entry = "amdahl_fit"
    arguments = ("workers", "seconds")
    returns = {"share": "numbers", "limit": "numbers"}
    items = (
        Item("exact", 3, title="Timings that follow the law exactly"),
        Item("disturbed", 3, title="Several samples each, some of them disturbed"),
        Item("edges", 5, title="Jobs that are all parallel, or all serial"),
    )
    domain = {"n": Whole(2, upto=33), "samples": Whole(upto=33), "workers": Choice("rising", "in any order")}

    @staticmethod
    def job(rng, item, share, noise=0.0, samples=1, disturbed=0, workers=None):
        if workers is None:
            workers = np.unique(np.concatenate([[1], rng.integers(2, 65, 6)]))
        seconds = float(rng.uniform(1, 50)) * (share + (1 - share) / workers)
        table = seconds[:, None] * (1 + noise * rng.uniform(-1, 1, (len(workers), samples)))
        for row in table:
            row[rng.permutation(samples)[:disturbed]] *= 5
        inputs = {"workers": [int(n) for n in workers], "seconds": table}
        return Case(
            f"{item}, {len(workers)} numbers of workers, {so_many(samples, 'sample')}",
            inputs,
            item,
        )

    def make_cases(self, rng):
        job = functools.partial(self.job, rng)
        return [
            job("exact", float(rng.uniform(0.02, 0.3))),
            job("exact", float(rng.uniform(0.3, 0.9))),
            job("disturbed", float(rng.uniform(0.05, 0.4)), 0.02, 9, 3),
            job("disturbed", float(rng.uniform(0.05, 0.4)), 0.05, 7, 2),
            job("edges", -0.02),
            job("edges", 1.3),
        ]

    def at(self, rng, place):
        """Workers of which 1 is none, few and many of them, so that rounding decides nothing."""
        workers = np.append(2 + rng.permutation(60)[: place["n"] - 1], int(rng.integers(70, 200)))
        workers = np.sort(workers) if place["workers"] == "rising" else rng.permutation(workers)
        share, disturbed = float(rng.uniform(0.2, 0.8)), (place["samples"] - 1) // 2
        return self.job(rng, "disturbed", share, 0.001, place["samples"], disturbed, workers)

    def reference(self, inputs):
        n, t = np.array(inputs["workers"], float), np.median(inputs["seconds"], axis=1)
        b, a = np.linalg.lstsq(np.stack([1 / n, np.ones_like(n)], axis=1), t, rcond=None)[0]
        share = min(max(a / (a + b), 0.0), 1.0)
        return {"share": np.array(share), "limit": np.array(1 / share if share else np.inf)}

    def tolerance(self, inputs, expected):
        """Rounding only: another way to solve the same least squares may lose a few digits of float64, not
        six.
        """
        limit = float(expected["limit"])
        return {"share": 1e-9, "limit": 1e-6 * limit if np.isfinite(limit) else 0.0}


class Reduction(KernelTask):
    """A kernel that adds up into the one number `total`, which starts at 0."""

    arguments = ("x", "total")
    atomics = True
    domain = {
        "n": Whole(upto=4200),
        "blocks": Whole(upto=17),
        "x": Values("float32", "plain", "negative", "zeros", "equal", "falling"),
    }

    def data(self, item, rng, count, blocks):
        inputs = {
            "x": rng.random(count, dtype=np.float32),
            "total": np.zeros(1, np.float32),
            "blocks": int(blocks),
        }
        return Case(
            f"{item}, {so_many(count, 'number')}, {so_many(blocks, 'block')} of {BLOCK}", inputs, item
        )

    def at(self, rng, place):
        case = self.data("right", rng, place["n"], place["blocks"])
        case.inputs["x"][:] = self.domain["x"].draw(rng, place["x"], place["n"])
        return case

    def result(self, inputs):
        return {"total": ((1,), "float32")}

    def plan(self, inputs):
        return inputs["blocks"], BLOCK

    def reference(self, inputs):
        return {"total": self.terms(inputs).sum(keepdims=True)}

    def terms(self, inputs):
        """What is added up, float64."""
        return inputs["x"].astype(np.float64)

    def tolerance(self, inputs, expected):
        return {"total": sum_tolerance(inputs["x"].size, np.abs(self.terms(inputs)).sum())}


class BlockReduction(Reduction):
    """A reduction in which the threads of a block add up together, with a row "together" and a row "time"."""

    yardstick = COPY
    TIME = Bound("time.ratio_low", 3.0, 9.0, "times the time of a copy of as many bytes")
    # Instructions of a warp in PTX, allowed for one number of each lane and for everything else: see
    # together().
    NUMBER, FIXED = 16, 700

    def together(self, inputs):
        """Where all warps share the work, the busiest issues about 12 instructions for each number that its
        lanes bring, and 150 to 180 for table, barriers or shuffles (700 where the strides are worked out
        as 2**k). One warp that adds up for all eight issues eight times as many for the numbers.
        """
        full = self.NUMBER * (inputs["x"].size // (inputs["blocks"] * BLOCK)) + self.FIXED
        return Bound("busiest_warp_instructions", full, 1.5 * full, "instructions issued by the busiest warp")

    def unshared(self, inputs, counters, launch=()):
        """Beside the work of all warps: a grid-stride loop reads each number once, eight to a sector, and a
        block hands in one sum.

        A run of neighbours for each thread reads eight times as many sectors, and no request more. Threads
        that each hand in their own have no use for a table.
        """
        handed_in, blocks = counters.get("atomics.lanes", 0.0), inputs["blocks"]
        if handed_in > 32 * blocks:
            return (
                f"{number(handed_in)} sums handed in by {so_many(blocks, 'block')}: the threads of a block "
                "add up together, and one of them hands in the sum"
            )
        fewest, read = inputs["x"].size / 8, counters.get("global_load.sectors", 0.0)
        if read > 2 * fewest + 2 * inputs["blocks"]:
            return (
                f"{number(read)} sectors read where {number(fewest)} hold all numbers: neighbouring threads "
                "read neighbouring numbers in a grid-stride loop"
            )
        return super().unshared(inputs, counters, launch)

    def make_timed(self, rng):
        """2^24 numbers, 64 MiB, 16 for each thread.

        They are 0 or -1: such sums have no rounding in float32, in any order, and are compared exactly. The
        bound for 2^24 rounded additions would let any answer pass.
        """
        x = -rng.integers(0, 2, 1 << 24, np.int8).astype(np.float32)
        inputs = {"x": x, "total": np.zeros(1, np.float32), "blocks": 4096, "exact": 1}
        return [Case(f"time, {x.size:,} numbers, 4,096 blocks of {BLOCK}", inputs, "time")]

    def tolerance(self, inputs, expected):
        return {"total": 0.0} if "exact" in inputs else super().tolerance(inputs, expected)


@task("ps03/reduce_atomic", points=10)
class ReduceAtomic(Reduction):
    """The sum of what each number has above DRUNK, each added to the total by its own thread."""

    entry = "reduce_atomic"
    DRUNK = 0.25
    domain = {"n": Whole(), "spare": Whole(0, upto=3, says=("some to spare",)), "x": Reduction.domain["x"]}
    items = (
        Item("full", 4, title="As many threads as numbers"),
        Item("ragged", 3, title="More threads than numbers"),
        Item("coalesced", 3, "structure", "Neighbouring threads read neighbouring numbers"),
    )

    def make_cases(self, rng):
        ragged = [1, 37, int(2 * rng.integers(200, 450) + 1)]
        return [
            self.data("full", rng, BLOCK * 3, 3),
            *(self.data("ragged", rng, count, -(-count // BLOCK)) for count in ragged),
            self.data("coalesced", rng, BLOCK * int(rng.integers(3, 6)), 6),
        ]

    def data(self, item, rng, count, blocks):
        case = super().data(item, rng, count, blocks)
        case.inputs["x"][-1] = 1.0  # a single number counts, too
        return case

    def at(self, rng, place):
        blocks = -(-place["n"] // BLOCK) + place["spare"]
        case = super().at(rng, place | {"blocks": blocks})
        if place["x"] == "equal":  # exactly what the ground takes in
            case.inputs["x"][:-1] = self.DRUNK
        return replace(case, item="ragged", name=case.name.replace("right", "ragged"))

    def terms(self, inputs):
        return np.maximum(inputs["x"].astype(np.float64) - self.DRUNK, 0.0)

    def bounds(self, inputs):
        """Each number is read once, eight to a sector, and the atomic of a warp reads the total's sector."""
        fewest, totals = inputs["x"].size / 8, inputs["x"].size / 32
        return {
            "coalesced": Bound("global_read.sectors", fewest + totals, 2 * fewest + totals, "sectors read")
        }


@task("ps03/reduce_tree", points=20)
class ReduceTree(BlockReduction):
    """The sum of all numbers: each thread adds up its share, each block its threads on a table, one atomic a
    block.
    """

    entry = "reduce_tree"
    items = (
        Item("right", 5, title="Right for any size and any number of blocks"),
        Item("atomics", 5, "structure", "One atomic a block"),
        Item("table", 5, "structure", "Few trips to the table"),
        Item("together", 3, "structure", "All eight warps of a block share the work"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )

    def make_cases(self, rng):
        sizes = [
            (1, 1),
            (BLOCK, 1),
            (int(2 * rng.integers(600, 1200) + 1), 2),
            (int(rng.integers(3000, 5000)), 7),
            (100, 4),
        ]
        return [
            *(self.data("right", rng, *size) for size in sizes),
            *(self.data(item, rng, BLOCK * 16, 8) for item in ("atomics", "table")),
            self.data("together", rng, BLOCK * 64, 8),
        ]

    def bounds(self, inputs):
        """Two numbers for each thread, so that nothing is counted of a kernel that takes one.

        Halves first, a block of 8 warps: 8 to put down, 12 warp-rounds with two reads and a write each, one
        read: 45. Neighbours first wakes every warp in the first five rounds: 150. An atomic for each
        warp would be 8 a block. The loads of the numbers are counted with either, a request a warp: one
        thread that adds up everything needs no table and 32 times the loads. So is the atomic of a block,
        as a request that reads: numbers can be read by atomics, too. Those of several lanes are one request
        and as many additions, so additions are counted.

        Time: reading decides. A thread has one load under way where the compiler does not unroll its loop,
        about half of what fills an H100's door, and then come nine barriers: three times the copy's time
        earns all. Provisional: not yet recorded on a GPU.
        """
        blocks, loads = inputs["blocks"], inputs["x"].size // 32
        return {
            "atomics": Bound(
                "atomics.lanes + global_load.requests",
                blocks + loads,
                3 * blocks + loads,
                "atomic additions and load requests",
            ),
            "table": Bound(
                "shared_memory.requests + global_read.requests",
                50 * blocks + blocks + loads,
                100 * blocks + blocks + loads,
                "requests to the table, loads and atomics",
            ),
            "together": self.together(inputs),
            "time": self.TIME,
        }


@task("ps03/reduce_shuffle", points=20)
class ReduceShuffle(BlockReduction):
    """The sum of the squares: lanes of a warp exchange registers, and warps meet on the table once."""

    entry = "reduce_shuffle"
    items = (
        Item("right", 5, title="Right for any size and any number of blocks"),
        Item("table", 6, "structure", "At most one trip a warp to the table, and one more"),
        Item("atomics", 3, "structure", "One atomic a block"),
        Item("together", 4, "structure", "All eight warps of a block share the work"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )

    def make_cases(self, rng):
        sizes = [
            (1, 1),
            (BLOCK, 1),
            (int(2 * rng.integers(600, 1200) + 1), 2),
            (int(rng.integers(3000, 5000)), 7),
            (33, 3),
        ]
        return [
            *(self.data("right", rng, *size) for size in sizes),
            *(self.data(item, rng, BLOCK * 8, 8) for item in ("table", "atomics")),
            self.data("together", rng, BLOCK * 64, 8),
        ]

    def terms(self, inputs):
        return inputs["x"].astype(np.float64) ** 2

    def bounds(self, inputs):
        """As for the tree, with a trip for each of the 8 warps and one more.

        Time: as for the tree, too; both wait for the door. Provisional: not yet recorded on a GPU.
        """
        blocks, loads = inputs["blocks"], inputs["x"].size // 32
        return {
            "table": Bound(
                "shared_memory.requests + global_read.requests",
                (WARPS + 1) * blocks + blocks + loads,
                2 * (WARPS + 1) * blocks + blocks + loads,
                "requests to the table, loads and atomics",
            ),
            "atomics": Bound(
                "atomics.lanes + global_load.requests",
                blocks + loads,
                3 * blocks + loads,
                "atomic additions and load requests",
            ),
            "together": self.together(inputs),
            "time": self.TIME,
        }


@task("ps03/fix_the_race", points=11)
class FixTheRace(KernelTask):
    """Heat that spreads along a rod of one block's length: `rounds` times, each place becomes the mean of
    itself and its two neighbours.

    The ends have one neighbour less and count their own place twice.
    """

    entry = "fix_the_race"
    arguments = ("x", "rounds", "out")
    items = (
        Item("one", 2, title="One round, and no race"),
        Item("many", 4, title="Many rounds, and no race"),
        Item("together", 5, "structure", "All threads still work at the same time"),
    )
    domain = {"rods": Whole(upto=9), "rounds": Whole(0, upto=17)}
    # Instructions of a warp in PTX, allowed for one round and for everything else: see bounds().
    ROUND, FIXED = 75, 60

    @staticmethod
    def rods(rng, item, blocks, rounds):
        inputs = {"x": rng.random(blocks * BLOCK, dtype=np.float32) * 100, "rounds": int(rounds)}
        told = f"{so_many(blocks, 'rod')} of {BLOCK} places, {so_many(rounds, 'round')}"
        return Case(f"{item}, {told}", inputs, item)

    def make_cases(self, rng):
        rods = functools.partial(self.rods, rng)
        return [
            rods("one", 1, 1),
            rods("one", 3, 1),
            rods("many", 2, rng.integers(3, 7)),
            rods("many", 1, 2),
            rods("many", 1, 0),
            rods("together", 6, 20),  # of one rod nobody sees that a single block does all
        ]

    def at(self, rng, place):
        return self.rods(rng, "one" if place["rounds"] == 1 else "many", place["rods"], place["rounds"])

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def plan(self, inputs):
        return inputs["x"].size // BLOCK, BLOCK

    def reference(self, inputs):
        rod = inputs["x"].astype(np.float64).reshape(-1, BLOCK)
        for _ in range(inputs["rounds"]):
            padded = np.pad(rod, ((0, 0), (1, 1)), mode="edge")
            rod = (padded[:, :-2] + rod + padded[:, 2:]) / 3
        return {"out": rod.ravel()}

    def tolerance(self, inputs, expected):
        """A round is a sum of three and a division, and a mean passes on at most the largest error of its
        terms: the bounds of the rounds add up.
        """
        return {"out": max(inputs["rounds"], 1) * sum_tolerance(4, np.abs(inputs["x"]).max())}

    def bounds(self, inputs):
        """A round is three reads, three operations, a write, two barriers and the indices: ROUND leaves room
        for odd ones (a % 2 of a 64-bit number costs ten) and for shuffles. One thread alone goes round 256
        times as often, one warp alone eight times, and a total over all warps would not show the latter.
        """
        full = self.ROUND * inputs["rounds"] + self.FIXED
        unit = "instructions issued by the busiest warp"
        return {"together": Bound("busiest_warp_instructions", full, 2 * full, unit)}


@task("ps03/scan", points=15)
class Scan(DriverTask):
    """Running totals of a whole array: out[i] = x[0] + ... + x[i]."""

    entry = "scan"
    arguments = ("device", "x", "out")
    atomics = True  # one pass is possible too, with blocks that hand on totals while others still add up
    yardstick = COPY
    items = (
        Item("one_block", 3, title="Up to 256 numbers"),
        Item("many_blocks", 5, title="Many blocks, and no round number"),
        Item("two_passes", 5, "structure", "Two passes over the data, not one for each power of two"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )
    domain = {"n": Whole(upto=66_000), "x": Values("int32", "plain", "zeros", "equal", "negative")}

    @staticmethod
    def numbers(rng, item, count):
        return Case(
            f"{item}, {so_many(count, 'number')}", {"x": rng.integers(-1000, 1000, count, np.int32)}, item
        )

    def make_cases(self, rng):
        more_totals_than_a_block_scans = BLOCK * int(rng.integers(BLOCK + 1, BLOCK + 20)) + 1
        many = (BLOCK * 5, int(2 * rng.integers(500, 2000) + 1), more_totals_than_a_block_scans)
        sizes = [
            *(("one_block", count) for count in (1, 37, BLOCK)),
            *(("many_blocks", count) for count in many),
        ]
        return [self.numbers(rng, *size) for size in (*sizes, ("two_passes", BLOCK * 32))]

    def at(self, rng, place):
        case = self.numbers(rng, "one_block" if place["n"] <= BLOCK else "many_blocks", place["n"])
        if place["x"] != "plain":
            case.inputs["x"][:] = {"zeros": 0, "equal": 7, "negative": -1000}[place["x"]]
        return case

    def make_timed(self, rng):
        return [self.numbers(rng, "time", 1 << 23)]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "int32")}

    def unshared(self, inputs, counters, launch=()):
        """32 blocks have 256 warps. The busiest warps of all launches together issue one instruction in 137,
        one in 55 where a single thread scans the totals; one in eight where one block goes through all.
        """
        total, busiest = (counters.get(name) for name in ("warp_instructions", "busiest_warp_instructions"))
        if not total or not busiest or busiest <= total / 20:
            return None
        return (
            f"the busiest warps issue {number(busiest)} of {number(total)} instructions: divide the numbers "
            "among blocks, and scan all blocks at the same time"
        )

    def reference(self, inputs):
        return {"out": inputs["x"].astype(np.int64).cumsum()}

    def bounds(self, inputs):
        """Two passes read and write n numbers of 4 bytes: 4 n / 8 sectors, and a tenth more for the totals of
        the blocks. A scan in global memory with a launch for each power of two would take more than three
        times as many.

        Time: two passes are two copies, and the rounds of a block, two barriers each, take about as long
        again on a GPU with few schedulers, three times as long on one with a wide door. 2^23 numbers with a
        launch for each power of two are 23 copies: points run out there. Provisional: not yet recorded on a
        GPU.
        """
        fewest = 4 * inputs["x"].size / 8
        return {
            "two_passes": Bound("global_memory.sectors", 1.1 * fewest, 2 * fewest, "sectors"),
            "time": Bound("time.ratio_low", 12.0, 23.0, "times the copy's time"),
        }


@task("ps03/hours_cause", points=2)
class HoursCause(Task):
    """What the given program leaves out: halves that are rounded down forget the odd place of each round."""

    entry = "hours_cause"
    arguments = ("minutes",)
    returns = {"lost": "integers"}
    items = (
        Item("hour", 1, title="Hours of 60 minutes, and other even lengths"),
        Item("any", 1, title="Any other length"),
    )
    domain = {"minutes": Whole(1, 1024)}

    @staticmethod
    def asked(minutes):
        item = "any" if minutes % 2 else "hour"
        return Case(f"{item}, {so_many(minutes, 'minute')}", {"minutes": int(minutes)}, item)

    def make_cases(self, rng):
        drawn = (2 * rng.integers(40, 500, 3)).tolist()
        return [self.asked(minutes) for minutes in (60, 64, 96, *drawn, 1, 3, 45, drawn[0] + 1)]

    def at(self, rng, place):
        return self.asked(place["minutes"])

    def reference(self, inputs):
        """By the places' weights: what place 0 does not hold at the end is lost."""
        holds = np.eye(inputs["minutes"], dtype=bool)
        half = inputs["minutes"] // 2
        while half:
            holds[:half] |= holds[half : 2 * half]
            half //= 2
        return {"lost": np.flatnonzero(~holds[0])}


@task("ps03/hours", points=6)
class Hours(KernelTask):
    """The sum of each block's numbers, in blocks of any length and with a last one that is not full: a
    program to mend.
    """

    entry = "hours"
    arguments = ("x", "out")
    items = (
        Item("length", 3, title="Intervals of any length"),
        Item("last", 2, title="A last interval that is not over"),
        Item("together", 1, "structure", "All threads of a block add up together"),
    )
    domain = {
        "minutes": Whole(1, 1024),
        "intervals": Whole(upto=9),
        "last": Choice("full", "not full"),
        "x": Values("float32", "plain", "zeros", "equal"),
    }
    # Instructions of a warp in PTX, allowed for one round and for everything else: see bounds().
    ROUND, FIXED = 40, 80

    def rain(self, rng, item, minutes, intervals, missing=0, kind="plain"):
        count = int(minutes) * int(intervals) - int(missing)
        x = self.domain["x"].draw(rng, kind, count)
        told = f"{item}, {so_many(count, 'number')}, {so_many(intervals, 'interval')} of {minutes}"
        return Case(told, {"x": x, "minutes": int(minutes), "intervals": int(intervals)}, item)

    def make_cases(self, rng):
        odd = 2 * int(rng.integers(40, 300)) + 1
        return [
            self.rain(rng, "length", 60, 3),
            self.rain(rng, "length", 1, 2),
            self.rain(rng, "length", 3, 2),
            self.rain(rng, "length", odd, 2),
            self.rain(rng, "last", 64, 3, 19),
            self.rain(rng, "last", 1024, 1, 5),
            self.rain(rng, "last", 256, 2, int(rng.integers(100, 256))),
            self.rain(rng, "together", 500, 4),
        ]

    def at(self, rng, place):
        minutes, intervals = place["minutes"], place["intervals"]
        missing = int(rng.integers(1, minutes)) if place["last"] == "not full" and minutes > 1 else 0
        item = "last" if missing and minutes & (minutes - 1) == 0 else "length"
        return self.rain(rng, item, minutes, intervals, missing if item == "last" else 0, place["x"])

    def result(self, inputs):
        return {"out": ((inputs["intervals"],), "float32")}

    def plan(self, inputs):
        return inputs["intervals"], inputs["minutes"]

    def _intervals(self, inputs):
        """The numbers in float64, a row for each interval, 0 where there is none."""
        whole = np.zeros(inputs["intervals"] * inputs["minutes"])
        whole[: inputs["x"].size] = inputs["x"]
        return whole.reshape(inputs["intervals"], -1)

    def reference(self, inputs):
        return {"out": self._intervals(inputs).sum(axis=1)}

    def tolerance(self, inputs, expected):
        return {"out": sum_tolerance(inputs["minutes"], np.abs(self._intervals(inputs)).sum(axis=1))}

    def bounds(self, inputs):
        """A round is two reads, a sum and a write, a barrier and the indices, and it halves what is left; one
        thread that adds up for all goes round as often as there are minutes.
        """
        rounds = int(np.ceil(np.log2(inputs["minutes"])))
        full = self.ROUND * rounds + self.FIXED
        unit = "instructions issued by the busiest warp"
        return {"together": Bound("busiest_warp_instructions", full, 2 * full, unit)}
