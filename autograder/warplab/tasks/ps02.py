"""Problem set 2, cores: the size from which a GPU pays, grid-stride loops, divergence, latency hiding, and a
program to mend that does more work the more threads it has.
"""

import functools
import math
from dataclasses import replace

import numpy as np

from warplab.hardware.target import Target
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, KernelTask, Task, task
from warplab.tasks.domain import PLAIN, Choice, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many

THREADS = 128


@task("ps02/crossover", points=16)
class Crossover(Task):
    """The size from which on a GPU is faster than the CPU, from timings with outliers.

    m = log(median(cpu)) - log(median(gpu)) at each size is positive where the GPU wins. The crossing lies
    after the last size with m <= 0, where the straight line of m against log(size) to the next size passes 0;
    it is the first size if the GPU wins everywhere, and infinity if it does not win at the last.
    """

    entry = "crossover"
    arguments = ("sizes", "cpu", "gpu")
    returns = {"size": "numbers"}
    items = (
        Item("clean", 4, title="Quiet machines: where the two curves cross"),
        Item("disturbed", 4, title="A few samples that took ten times as long"),
        Item("lucky", 4, title="A win that does not last"),
        Item("never", 4, title="A GPU that wins always, or never"),
    )
    domain = {
        "n": Whole(upto=33),
        "samples": Whole(upto=33),
        "gpu": Choice("wins at last", "wins always", "wins never", "is as fast at last"),
    }
    corners = 8

    @staticmethod
    def timings(
        rng, item, overhead, peak_ratio, samples=1, disturbed=0, lucky=(), tie=False, count=9, high=14
    ):
        """CPU: time proportional to size^1.5.

        GPU: `overhead` seconds, then `peak_ratio` times as fast.
        """
        sizes = np.unique((2.0 ** np.sort(rng.uniform(4, high, count))).astype(np.int64))
        work = 1e-9 * sizes**1.5
        if lucky:  # the GPU also wins at one size well below the last one at which it loses
            overhead = work[-4]
        if tie:  # after wins at smaller sizes
            overhead = work[min(3, len(work) - 1)]
        cpu = work[:, None] * rng.uniform(0.99, 1.01, (len(sizes), samples))
        gpu = (overhead + work / peak_ratio)[:, None] * rng.uniform(0.99, 1.01, (len(sizes), samples))
        for row in range(len(sizes)):
            for table in (cpu, gpu):
                table[row, rng.permutation(samples)[:disturbed]] *= 10
        for row in lucky:
            gpu[row] = cpu[row] / 2
        if tie:  # at the largest size neither wins
            gpu[-1] = cpu[-1]
        inputs = {"sizes": [int(n) for n in sizes], "cpu": cpu, "gpu": gpu}
        return Case(f"{item}, {so_many(len(sizes), 'size')}, {so_many(samples, 'sample')}", inputs, item)

    def make_cases(self, rng):
        timings = functools.partial(self.timings, rng)
        overhead = [float(t) for t in rng.uniform(2e-6, 2e-5, 4)]
        return [
            timings("clean", overhead[0], 20.0),
            timings("clean", overhead[1], 5.0, samples=4),
            timings("disturbed", overhead[2], 12.0, samples=9, disturbed=2),
            timings("disturbed", overhead[0], 30.0, samples=9, disturbed=4),
            timings("lucky", overhead[3] * 3, 15.0, samples=5, lucky=[1]),
            timings("lucky", overhead[3] * 3, 15.0, samples=5, lucky=[0, 2]),
            timings("never", 0.0, 2.0, samples=3),
            timings("never", overhead[1], 0.8, samples=3),
            timings("never", overhead[2], 15.0, samples=3, tie=True),
        ]

    def at(self, rng, place):
        samples, count = place["samples"], place["n"]
        overhead, ratio, item, tie = {
            "wins at last": (float(rng.uniform(1e-7, 2e-7)), 20.0, "clean", False),
            "wins always": (0.0, 2.0, "never", False),
            "wins never": (1e-6, 0.8, "never", False),
            "is as fast at last": (1e-6, 15.0, "never", True),
        }[place["gpu"]]
        disturbed = (samples - 1) // 2 if item == "clean" and rng.random() < 0.5 else 0
        item = "disturbed" if disturbed else item
        case = self.timings(rng, item, overhead, ratio, samples, disturbed, (), tie, count, 20)
        crossed = case.inputs["sizes"][0] < self.reference(case.inputs)["size"] < math.inf
        return case if crossed else replace(case, item="never", name=case.name.replace(item, "never"))

    def reference(self, inputs):
        gain = np.log(np.median(inputs["cpu"], axis=1)) - np.log(np.median(inputs["gpu"], axis=1))
        losing = np.flatnonzero(gain <= 0)
        if not len(losing):
            return {"size": np.array(float(inputs["sizes"][0]))}
        last = losing[-1]
        if last == len(gain) - 1:
            return {"size": np.array(np.inf)}
        share = gain[last] / (gain[last] - gain[last + 1])
        low, high = np.log(inputs["sizes"][last]), np.log(inputs["sizes"][last + 1])
        return {"size": np.array(np.exp(low + share * (high - low)))}

    def tolerance(self, inputs, expected):
        """Rounding only: the algorithm is fully specified, and float64 loses far less than a thousandth."""
        size = float(expected["size"])
        return {"size": 1e-3 if math.isfinite(size) else 0.0}


@task("ps02/grid_stride", points=20)
class GridStride(KernelTask):
    """out = (mean of raw over the exposures - dark) * gain for every pixel, for any number of threads."""

    entry = "grid_stride"
    arguments = ("raw", "dark", "gain", "out")
    yardstick = COPY
    items = (
        Item("more_work", 6, title="More pixels than threads"),
        Item("less_work", 4, title="Fewer pixels than threads, and no round number"),
        Item("coalesced", 7, "structure", "Neighbours take neighbouring pixels, and each number moves once"),
        Item("time", 3, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )
    domain = {
        "exposures": Whole(upto=33),
        "pixels": Whole(upto=4200),
        "blocks": Whole(upto=17),
        "gain": Choice(1.5, 0.0, -0.75),
    }

    @staticmethod
    def night(rng, item, count, blocks, exposures):
        inputs = {
            "raw": rng.integers(200, 4000, (exposures, count)).astype(np.float32),
            "dark": rng.random(count, dtype=np.float32) * 200,
            "gain": float(np.float32(rng.uniform(0.5, 2.0))),
            "blocks": blocks,
        }
        name = f"{item}, {exposures} x {so_many(count, 'pixel')}, {so_many(blocks, 'block')} of {THREADS}"
        return Case(name, inputs, item)

    def make_cases(self, rng):
        nights = [
            ("more_work", THREADS * 2 * int(rng.integers(6, 12)), 2, 3),
            ("more_work", 2 * int(rng.integers(2000, 3000)) + 1, 3, int(rng.integers(5, 8))),
            ("more_work", 4099, 1, 2),
            ("less_work", 1, 2, 3),
            ("less_work", 37, 4, 1),
            ("less_work", 2 * int(rng.integers(65, 120)) + 1, 4, 5),
            ("coalesced", THREADS * 4 * int(rng.integers(6, 10)), 4, 4),
        ]
        return [self.night(rng, *one) for one in nights]

    def fits(self, place):
        return place["exposures"] * place["pixels"] <= 10_000

    def at(self, rng, place):
        item = "more_work" if place["pixels"] > THREADS * place["blocks"] else "less_work"
        case = self.night(rng, item, place["pixels"], place["blocks"], place["exposures"])
        case.inputs["gain"] = place["gain"]
        return case

    def make_timed(self, rng):
        return [self.night(rng, "time", 1 << 21, 4096, 4)]

    def result(self, inputs):
        return {"out": (inputs["dark"].shape, "float32")}

    def plan(self, inputs):
        return inputs["blocks"], THREADS

    def reference(self, inputs):
        mean = inputs["raw"].astype(np.float64).mean(axis=0)
        return {"out": (mean - inputs["dark"]) * inputs["gain"]}

    def tolerance(self, inputs, expected):
        """Roundings of a sum, a quotient, a difference and a product, none larger than mean * gain."""
        mean = inputs["raw"].astype(np.float64).mean(axis=0)
        return {"out": sum_tolerance(len(inputs["raw"]) + 3, mean * abs(inputs["gain"]))}

    def bounds(self, inputs):
        """For each pixel, one float32 per exposure and one of `dark` are read and one is written, eight to a
        sector.

        A contiguous range of pixels for each thread needs a sector per lane, eight times as many. A sum that
        is kept in `out` is read and written for every exposure, about twice as many.

        Time: 24 bytes for each pixel and five operations; 4,096 blocks fill any GPU. Full points up to half
        of the roofline, twice the time of a copy, allow for the loops and a gain of 64 bits. Provisional: not
        yet recorded on a GPU.
        """
        fewest = (inputs["raw"].size + 2 * inputs["dark"].size) / 8
        return {
            "coalesced": Bound("global_memory.sectors", fewest, 2 * fewest, "sectors"),
            "time": Bound("time.ratio_low", 2.0, 5.0, "times the copy's time"),
        }


@task("ps02/undiverge", points=30)
class Undiverge(KernelTask):
    """`steps` iterations of v = v * v + 0.25 for even stars and of v = 1 / (1 + v) for odd ones. No formula
    computes both in fewer operations than one after the other.
    """

    entry = "undiverge"
    arguments = ("x", "steps", "out")
    # PTX instructions per warp that are allowed for one iteration and for everything else: see bounds().
    ROUND, FIXED = 6, 60
    items = (
        Item("even", 4, title="Right for an even number of stars"),
        Item("odd", 3, title="Right for every other number of stars, down to one"),
        Item("uniform", 15, "structure", "No lane waits while others do their job, and no star gets both"),
        Item(
            "uniform_odd", 8, "structure", "The same for an odd number of stars: no lane waits, one job each"
        ),
    )
    domain = {"stars": Whole(upto=2050), "steps": Whole(0, upto=33)}

    @staticmethod
    def sky(rng, item, count, steps):
        inputs = {"x": rng.uniform(-0.45, 0.45, count).astype(np.float32), "steps": int(steps)}
        return Case(f"{item}, {so_many(count, 'star')}, {so_many(steps, 'round')}", inputs, item)

    def make_cases(self, rng):
        sky = functools.partial(self.sky, rng)
        return [
            sky("even", 512, int(rng.integers(10, 20))),
            sky("even", 2 * int(rng.integers(70, 130)), 7),
            sky("even", 64, 0),
            sky("odd", 1, 5),
            sky("odd", 2 * int(rng.integers(70, 130)) + 1, int(rng.integers(3, 9))),
            sky("odd", 129, 4),
            sky("uniform", 256 * int(rng.integers(3, 6)) - 2, 96),  # no multiple of a warp
            sky("uniform_odd", 256 * int(rng.integers(3, 6)) - 1, 96),
        ]

    def at(self, rng, place):
        return self.sky(rng, "odd" if place["stars"] % 2 else "even", place["stars"], place["steps"])

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def plan(self, inputs):
        return -(-inputs["x"].size // THREADS), THREADS

    def reference(self, inputs):
        v = inputs["x"].astype(np.float64)
        for _ in range(inputs["steps"]):
            v[0::2] = v[0::2] ** 2 + 0.25
            v[1::2] = 1 / (1 + v[1::2])
        return {"out": v}

    def tolerance(self, inputs, expected):
        """For even stars |v| < 0.5, so that a rounding error shrinks by |2 v| < 1 in each later iteration.
        For odd ones 0.35 < v < 1.82 after the first iteration, each with two rounding errors that shrink by
        (1 + v)^-2 < 0.6 in the next: never more than four units of 2^-24.
        """
        return {"out": 4 * (inputs["steps"] + 1) * 2.0**-24}

    def unshared(self, inputs, counters, launch=()):
        """An unrolled loop with both formulas stays below the limit of bounds(): divergence is tested here.

        If a warp has stars of both kinds, the lanes of one kind are inactive for two instructions or more per
        iteration; if the kinds are separated, for none. An iteration of either formula is two floating-point
        operations: an FMA, or a sum and a quotient. A kernel that computes both for every star and selects
        one makes four; one formula with coefficients for each kind makes four or more.
        """
        rounds = inputs["x"].size * inputs["steps"]
        issued, done = (counters.get(name, 0.0) for name in ("warp_instructions", "flops"))
        idle = 32 * issued - counters.get("thread_instructions", 32 * issued)
        if issued >= self.bounds(inputs)["uniform"].zero:
            return super().unshared(inputs, counters, launch)
        if idle > rounds / 2:
            return (
                f"{number(idle)} times a lane sits out an instruction of its warp, in {number(rounds)} "
                "rounds of all stars: stars of both kinds share a warp"
            )
        if done > 2.25 * rounds:
            return (
                f"{number(done)} floating-point operations where {number(2 * rounds)} do all rounds: "
                "every star gets both jobs, and the result of one is thrown away"
            )
        return super().unshared(inputs, counters, launch)

    def bounds(self, inputs):
        """An iteration is one or two instructions on v and two or three of the loop; ROUND allows a few more.
        A warp with stars of both kinds issues both formulas, at least a third more than the bound.
        """
        warps = -(-inputs["x"].size // 32)
        full = warps * (self.ROUND * inputs["steps"] + self.FIXED)
        bound = Bound("warp_instructions", full, 1.3 * full, "warp instructions")
        return {"uniform": bound, "uniform_odd": bound}


@task("ps02/latency_hiding", points=21)
class LatencyHiding(Task):
    """The resident blocks of an SM, the occupancy, the loads in flight that each thread needs to hide the
    latency, and the registers per thread that can be added without losing a resident block.
    """

    entry = "latency_hiding"
    arguments = ("sm", "registers", "shared", "threads")
    returns = {"blocks": "integers", "occupancy": "numbers", "loads": "integers", "spare": "integers"}
    MOST_REGISTERS = 255  # of a thread
    items = (
        Item("warps", 2, title="Blocks, where warps or blocks are what is short"),
        Item("registers", 2, title="Blocks, where registers are short"),
        Item("shared", 1, title="Blocks, where shared memory is short"),
        Item("occupancy", 1, title="Occupancy"),
        Item("loads", 8, title="Loads of four bytes under way in each thread, to use all of the bandwidth"),
        Item("spare", 7, title="Registers more for each thread, without a block fewer"),
    )
    domain = {
        "registers": Whole(1, MOST_REGISTERS, says=("at most 255 in all",)),
        "shared": Whole(0, upto=60_000),
        "threads": Whole(upto=1024),
        "sm": Choice("sm_75", "sm_80", "sm_90"),
        "reserved": Choice(PLAIN, 0, 8192),
        "asked": Choice("blocks", "spare"),
    }
    corners = 12

    def make_cases(self, rng):
        kernel = functools.partial(self._kernel, rng)
        share, wait, more = ("occupancy",), ("loads",), ("spare",)
        other = {"schedulers": 2, "register_unit": 512, "shared_unit": 512, "reserved": 768, "warps": 40}
        roomy = (
            164 * 1024 // int(rng.integers(5, 8)) - 2048
        )  # the number of blocks is the same with and without the reserved kilobyte
        whole = 64 * int(rng.integers(8, 14))  # 8 warps: one load per thread for each 64 cycles of 16 bytes
        nearly_whole = [{"latency": whole + more, "bytes_per_cycle": 16.0} for more in (-1, 0, 1)]
        return [
            kernel("warps", "sm_90", 16, 0, 1024),
            kernel("warps", "sm_75", 20, 0, 100),
            kernel("warps", "sm_90", 16, 0, 32),
            kernel("warps", "sm_80", 16, 128, 32 * int(rng.integers(17, 25)) - 5),
            kernel("warps", "sm_90", 16, 0, 385),  # one thread makes a thirteenth warp
            kernel("registers", "sm_90", 40, 0, 256),
            kernel("registers", "sm_90", 41, 0, 256),
            kernel("registers", "sm_80", 94, 0, 256),
            kernel("registers", "sm_90", 94, 0, 32),
            kernel("registers", "sm_75", int(rng.integers(65, 120)), 0, 192),
            kernel("registers", "sm_90", 255, 0, 256),
            kernel("registers", "sm_80", int(rng.integers(97, 113)), 0, 96, **other),
            kernel("shared", "sm_90", 32, 32 * 1024, 256),
            kernel("shared", "sm_75", 32, 16 * 1024, 64),
            kernel("shared", "sm_80", 24, int(rng.integers(9_000, 20_000)), 128),
            kernel("shared", "sm_80", 16, 512 * int(rng.choice([28, 45, 53])), 64, **other),
            kernel("shared", "sm_90", 16, 0, 32, reserved=8192 * int(rng.integers(1, 4))),
            kernel("occupancy", "sm_90", 94, 0, 256, share),
            kernel("occupancy", "sm_80", 32, roomy, 96, share),
            kernel("occupancy", "sm_80", 100, 0, 96, share, **other),
            kernel("loads", "sm_90", 32, 0, 256, wait),
            kernel("loads", "sm_80", 128, 0, int(32 * rng.integers(2, 5)), wait),
            kernel("loads", "sm_75", 64, 8 * 1024, 128, wait),
            *(kernel("loads", "sm_90", 255, 0, 32, wait, **door) for door in nearly_whole),
            kernel("spare", "sm_90", 33, 0, 256, more),
            kernel("spare", "sm_90", 40, 0, 256, more),  # none: the next one costs a block
            kernel("spare", "sm_90", int(rng.integers(100, 127)), 0, 160, more),  # 15 warps: 4 a quarter
            kernel("spare", "sm_90", 20, 40 * 1024, 128, more),  # shared memory is short, registers are not
            kernel(
                "spare", "sm_90", int(rng.integers(130, 250)), 200 * 1024, 128, more
            ),  # up to the last one
            kernel("spare", "sm_80", int(rng.integers(65, 73)), 0, 96, more, **other),
        ]

    def fits(self, place):
        """Whether at least one block fits on an SM."""
        case = self.at(np.random.default_rng(0), place)
        return self.blocks(case.inputs, place["registers"]) > 0

    def at(self, rng, place):
        """The row is that of the limit that decides; only the row "warps" has partly filled warps."""
        sizes = [place[name] for name in ("sm", "registers", "shared", "threads")]
        drawn = place["reserved"] != PLAIN and place["asked"] == "blocks"
        other = {"reserved": place["reserved"]} if drawn else {}
        case = self._kernel(rng, place["asked"], *sizes, **other)
        if place["asked"] == "spare" or self.decides(case.inputs) != "warps":
            sizes[-1] = -(-place["threads"] // 32) * 32
            case = self._kernel(rng, place["asked"], *sizes, **other)
        if place["asked"] == "spare":
            return replace(case, only=("spare",))
        item = self.decides(case.inputs)
        return replace(case, item=item, name=case.name.replace("blocks", item))

    def decides(self, inputs):
        """The row of the limit that decides the number of resident blocks."""
        most = self.blocks(inputs, inputs["registers"])
        if self.blocks(inputs, 1) > most:
            return "registers"
        free = inputs | {"shared": 0, "sm": inputs["sm"] | {"reserved": 0}}
        return "shared" if self.blocks(free, inputs["registers"]) > most else "warps"

    def _kernel(self, rng, item, arch, registers, shared, threads, only=("blocks",), **other):
        limit = Target.of(arch).limits
        sm = {
            "warps": limit.max_warps_per_sm,
            "blocks": limit.max_blocks_per_sm,
            "schedulers": 4,
            "registers": limit.registers_per_sm,
            "register_unit": limit.register_unit,
            "shared": limit.shared_per_sm,
            "reserved": limit.reserved_shared,
            "shared_unit": limit.shared_unit,
            "latency": int(rng.integers(400, 900)),
            "bytes_per_cycle": float(rng.uniform(4, 16)),
        }
        sm |= other
        inputs = {"sm": sm, "registers": int(registers), "shared": int(shared), "threads": int(threads)}
        return Case(
            f"{item}, {arch}, {registers} registers, {shared:,} bytes, {threads} threads",
            inputs,
            item,
            only,
        )

    @staticmethod
    def blocks(inputs, registers):
        """The number of resident blocks with this many registers per thread."""
        sm = inputs["sm"]
        warps = -(-inputs["threads"] // 32)
        per_warp = -(-registers * 32 // sm["register_unit"]) * sm["register_unit"]
        per_block = -(-(inputs["shared"] + sm["reserved"]) // sm["shared_unit"]) * sm["shared_unit"]
        by_registers = sm["registers"] // sm["schedulers"] // per_warp * sm["schedulers"] // warps
        by_shared = sm["shared"] // per_block if per_block else sm["blocks"]
        return min(sm["warps"] // warps, sm["blocks"], by_registers, by_shared)

    def reference(self, inputs):
        sm, registers = inputs["sm"], inputs["registers"]
        blocks = self.blocks(inputs, registers)
        resident = blocks * -(-inputs["threads"] // 32)
        most = max(r for r in range(registers, self.MOST_REGISTERS + 1) if self.blocks(inputs, r) == blocks)
        loads = math.ceil(sm["latency"] * sm["bytes_per_cycle"] / (resident * 32 * 4))
        return {
            "blocks": np.array(blocks),
            "occupancy": np.array(resident / sm["warps"]),
            "loads": np.array(loads),
            "spare": np.array(most - registers),
        }

    def tolerance(self, inputs, expected):
        return {"occupancy": 1e-9}


@task("ps02/dimming_cause", points=2)
class DimmingCause(Task):
    """The bugs of the given program: its stride is the size of one block, so that a star is written by every
    block that begins before it, each time with two operations in 64 bits.
    """

    entry = "dimming_cause"
    arguments = ("stars", "blocks")
    returns = {"writes": "integers", "doubles": "integers"}
    items = (
        Item("writes", 1, title="The results that are written, again and again"),
        Item("doubles", 1, title="The operations in 64 bits"),
    )
    domain = {"stars": Whole(upto=70_000), "blocks": Whole(upto=1025)}

    @staticmethod
    def asked(item, stars, blocks):
        name = f"{item}, {so_many(stars, 'star')}, {so_many(blocks, 'block')} of {THREADS}"
        return Case(name, {"stars": int(stars), "blocks": int(blocks)}, item, (item,))

    def make_cases(self, rng):
        sizes = [(4096, 1), (4096, 8), (300, 2), (100, 3), (256, 2), (int(rng.integers(2000, 9000)), 5)]
        return [self.asked(item, *size) for size in sizes for item in ("writes", "doubles")]

    def at(self, rng, place):
        return self.asked(str(rng.choice(["writes", "doubles"])), place["stars"], place["blocks"])

    def reference(self, inputs):
        writes = sum(max(0, inputs["stars"] - THREADS * block) for block in range(inputs["blocks"]))
        return {"writes": np.array(writes), "doubles": np.array(2 * writes)}


@task("ps02/dimming", points=6)
class Dimming(KernelTask):
    """out = 100 (before - now) / before for every star, for any number of threads: a program to mend."""

    entry = "dimming"
    arguments = ("before", "now", "out")
    items = (
        Item("right", 1, title="Right for any number of stars and of blocks"),
        Item("once", 3, "structure", "Each star is done once, however many blocks there are"),
        Item("single", 2, "structure", "No 64-bit arithmetic"),
    )
    domain = {
        "stars": Whole(upto=4200),
        "blocks": Whole(upto=17),
        "now": Choice("drawn", "as before", "nothing"),
    }

    @staticmethod
    def exposures(rng, item, stars, blocks, now="drawn"):
        before = rng.uniform(200, 4000, int(stars)).astype(np.float32)
        share = {"drawn": rng.uniform(0.9, 1.1, int(stars)), "as before": 1, "nothing": 0}[now]
        inputs = {"before": before, "now": (share * before).astype(np.float32), "blocks": int(blocks)}
        return Case(
            f"{item}, {so_many(stars, 'star')}, {so_many(blocks, 'block')} of {THREADS}", inputs, item
        )

    def make_cases(self, rng):
        exposures = functools.partial(self.exposures, rng)
        return [
            exposures("right", 1024, 2),
            exposures("right", 1, 2),
            exposures("right", 2 * int(rng.integers(500, 1500)) + 1, 5),
            exposures("right", 100, 4),
            exposures("once", THREADS * 32 - 8, 8),  # the last block is not full
            exposures("single", THREADS * 8 - 8, 1),
        ]

    def at(self, rng, place):
        return self.exposures(rng, "right", place["stars"], place["blocks"], place["now"])

    def result(self, inputs):
        return {"out": (inputs["now"].shape, "float32")}

    def plan(self, inputs):
        return inputs["blocks"], THREADS

    def reference(self, inputs):
        before, now = (inputs[name].astype(np.float64) for name in ("before", "now"))
        return {"out": 100 * (before - now) / before}

    def tolerance(self, inputs, expected):
        """Four roundings of numbers no larger than 100 times the quotient of the two, or 100."""
        return {"out": sum_tolerance(4, 100 * (1 + inputs["now"] / inputs["before"].astype(np.float64)))}

    def bounds(self, inputs):
        """For each star two floats are read and one is written, eight to a sector; the given program repeats
        this in each block. It makes two operations in 64 bits for each star.
        """
        stars = inputs["now"].size
        return {
            "once": Bound("global_memory.sectors", 3 * stars / 8, 6 * stars / 8, "sectors"),
            "single": Bound("fp64_flops", 1, stars, "operations in 64 bits"),
        }
