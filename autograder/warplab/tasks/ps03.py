"""Problem set 3, serial and parallel: Amdahl's law, three reductions, a race to fix, a scan, and a reduction
to mend whose sums lose terms.
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
    """The serial share of a job from timings with n workers, and the limit of its speedup.

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
        """Numbers of workers without 1, some small and some large: the fit is well conditioned."""
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
        """Rounding only: another solver of the same least squares loses a few digits of float64, not six."""
        limit = float(expected["limit"])
        return {"share": 1e-9, "limit": 1e-6 * limit if np.isfinite(limit) else 0.0}


class Reduction(KernelTask):
    """A kernel that adds its result to `total`, an array of one element that starts at 0."""

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
        """The terms of the sum, float64."""
        return inputs["x"].astype(np.float64)

    def tolerance(self, inputs, expected):
        return {"total": sum_tolerance(inputs["x"].size, np.abs(self.terms(inputs)).sum())}


class BlockReduction(Reduction):
    """A reduction in which the threads of a block cooperate, with a row "together" and a row "time"."""

    yardstick = COPY
    TIME = Bound("time.ratio_low", 3.0, 9.0, "times the time of a copy of as many bytes")
    # PTX instructions per warp that are allowed for one element of each lane and for everything else: see
    # together().
    NUMBER, FIXED = 16, 700

    def together(self, inputs):
        """If the warps share the work evenly, each issues about 12 instructions per element of a lane, and
        150 to 180 for the table and barriers or the shuffles (700 where the strides are computed as 2**k).
        One warp that does the work of all eight issues eight times as many per element.
        """
        full = self.NUMBER * (inputs["x"].size // (inputs["blocks"] * BLOCK)) + self.FIXED
        return Bound("busiest_warp_instructions", full, 1.5 * full, "instructions issued by the busiest warp")

    def unshared(self, inputs, counters, launch=()):
        """Besides the balance of the warps: a grid-stride loop reads each element once, eight to a sector,
        and a block adds one sum to the total.

        A contiguous range for each thread reads eight times as many sectors in as many requests. If each
        thread adds its own sum to the total, no table is used.
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
    """The sum of max(x - DRUNK, 0), where each thread adds its own term to the total."""

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
        """Each element is read once, eight to a sector; a warp's atomic reads the sector of the total."""
        fewest, totals = inputs["x"].size / 8, inputs["x"].size / 32
        return {
            "coalesced": Bound("global_read.sectors", fewest + totals, 2 * fewest + totals, "sectors read")
        }


@task("ps03/reduce_tree", points=20)
class ReduceTree(BlockReduction):
    """A sum by a tree in shared memory: a sum per thread, then one per block, and one atomic per block."""

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
        """The cases have two elements per thread, so that a kernel without a loop over them earns nothing.

        If the upper half is added to the lower one first, a block of 8 warps makes 45 requests: 8 writes of
        the threads' sums, 12 rounds of a warp with two reads and a write each, and one read. If neighbours
        are added first, every warp is active in the first five rounds: 150. One atomic per warp would be 8
        per block. The loads of x are counted with either, one request per warp: one thread that adds up
        everything needs no table but 32 times the loads. The atomic of a block is counted as a read request,
        since x could be read by atomics as well. Atomics of several lanes are one request but several
        additions, so additions are counted.

        Time: the loads decide. A thread has one load in flight if the compiler does not unroll its loop,
        about half of what the HBM of an H100 needs, and nine barriers follow: full points up to three times
        the time of a copy. Provisional: not yet recorded on a GPU.
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
    """A sum of squares by shuffles within a warp, and one shared-memory exchange between the warps."""

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
        """As for the tree, with one shared-memory request for each of the 8 warps and one more.

        Time: as for the tree; both are bound by memory. Provisional: not yet recorded on a GPU.
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
    """Heat that spreads along a rod, one block per rod: in each of `rounds` iterations, each element becomes
    the mean of itself and its two neighbours.

    At the ends the missing neighbour is replaced by the element itself.
    """

    entry = "fix_the_race"
    arguments = ("x", "rounds", "out")
    items = (
        Item("one", 2, title="One round, and no race"),
        Item("many", 4, title="Many rounds, and no race"),
        Item("together", 5, "structure", "All threads still work at the same time"),
    )
    domain = {"rods": Whole(upto=9), "rounds": Whole(0, upto=17)}
    # PTX instructions per warp that are allowed for one iteration and for everything else: see bounds().
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
            rods("together", 6, 20),  # with one rod, a single block that does all the work is not detected
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
        """An iteration is a sum of three terms and a division, and the error of a mean is at most the largest
        error of its terms, so that the bounds of the iterations add up.
        """
        return {"out": max(inputs["rounds"], 1) * sum_tolerance(4, np.abs(inputs["x"]).max())}

    def bounds(self, inputs):
        """An iteration is three reads, three operations, a write, two barriers and the indices; ROUND allows
        more, for odd index arithmetic (% 2 of a 64-bit integer costs ten) and for shuffles. A single thread
        makes 256 times as many iterations, a single warp eight times; a total over all warps would not show
        the latter.
        """
        full = self.ROUND * inputs["rounds"] + self.FIXED
        unit = "instructions issued by the busiest warp"
        return {"together": Bound("busiest_warp_instructions", full, 2 * full, unit)}


@task("ps03/scan", points=15)
class Scan(DriverTask):
    """Running totals of a whole array: out[i] = x[0] + ... + x[i]."""

    entry = "scan"
    arguments = ("device", "x", "out")
    atomics = True  # for a single pass, too, in which blocks pass their totals to later blocks
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
        """Two passes read and write n float32 each: 4 n / 8 sectors, and a tenth more for the totals of the
        blocks. A scan in global memory with a launch for each power of two needs more than three times as
        many.

        Time: two passes are two copies. The iterations within a block, two barriers each, take about as long
        again on a GPU with few schedulers, and three times as long on one with a high bandwidth. 2^23
        elements with a launch for each power of two are 23 copies: no points from there on. Provisional: not
        yet recorded on a GPU.
        """
        fewest = 4 * inputs["x"].size / 8
        return {
            "two_passes": Bound("global_memory.sectors", 1.1 * fewest, 2 * fewest, "sectors"),
            "time": Bound("time.ratio_low", 12.0, 23.0, "times the copy's time"),
        }


@task("ps03/hours_cause", points=2)
class HoursCause(Task):
    """The bug of the given program: halves are rounded down, so the last of an odd number of sums is lost."""

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
        """The weight of each element in the final place 0: those with weight 0 are lost."""
        holds = np.eye(inputs["minutes"], dtype=bool)
        half = inputs["minutes"] // 2
        while half:
            holds[:half] |= holds[half : 2 * half]
            half //= 2
        return {"lost": np.flatnonzero(~holds[0])}


@task("ps03/hours", points=6)
class Hours(KernelTask):
    """The sum of each block's elements, for any block size and a last block that is not full: a program to
    mend.
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
    # PTX instructions per warp that are allowed for one iteration and for everything else: see bounds().
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
        """x in float64, one row for each interval, padded with 0."""
        whole = np.zeros(inputs["intervals"] * inputs["minutes"])
        whole[: inputs["x"].size] = inputs["x"]
        return whole.reshape(inputs["intervals"], -1)

    def reference(self, inputs):
        return {"out": self._intervals(inputs).sum(axis=1)}

    def tolerance(self, inputs, expected):
        return {"out": sum_tolerance(inputs["minutes"], np.abs(self._intervals(inputs)).sum(axis=1))}

    def bounds(self, inputs):
        """An iteration is two reads, a sum, a write, a barrier and the indices, and halves the number of
        sums; a single thread that adds up the block makes one iteration per minute.
        """
        rounds = int(np.ceil(np.log2(inputs["minutes"])))
        full = self.ROUND * rounds + self.FIXED
        unit = "instructions issued by the busiest warp"
        return {"together": Bound("busiest_warp_instructions", full, 2 * full, unit)}
