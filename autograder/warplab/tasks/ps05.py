"""Problem set 5, memory: sectors, bank conflicts and halos; a hierarchical roofline and changes that raise
it; softmax and attention with few reads of global memory; and a histogram with bank conflicts to mend.
"""

import functools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from warplab.tasks import soundings
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, KernelTask, Task, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many
from warplab.timing.bounds import WAVEFRONT

TILE = 32
ROW_BLOCK = 128
HEAD, QUERIES = 16, 64  # of attention: numbers in a vector, queries in a block


def sectors(*arrays):
    """Sectors of float32 arrays that are read or written once as a whole."""
    return sum(4 * int(np.prod(shape)) for shape in arrays) / 32


@task("ps05/copy_strided", points=8)
class CopyStrided(KernelTask):
    """out[i] = x[i * stride + offset] for every i of out."""

    entry = "copy_strided"
    arguments = ("x", "stride", "offset", "out")
    items = (
        Item("plain", 2, title="Stride 1, no offset"),
        Item("any", 3, title="Any stride and offset, any size"),
        Item("neighbours", 3, "structure", "Neighbouring threads write neighbours"),
    )
    domain = {"n": Whole(upto=2050), "stride": Whole(0, upto=260), "offset": Whole(0, upto=70_000)}

    @staticmethod
    def copied(rng, item, count, stride, offset):
        x = rng.random(count * stride + offset + 1, dtype=np.float32)
        inputs = {"x": x, "stride": int(stride), "offset": int(offset), "count": int(count)}
        return Case(f"{item}, {so_many(count, 'number')}, stride {stride}, offset {offset}", inputs, item)

    def make_cases(self, rng):
        copy = functools.partial(self.copied, rng)
        return [
            copy("plain", 512, 1, 0),
            copy("any", 1, 7, 3),
            copy("any", 2 * rng.integers(50, 200) + 1, rng.integers(2, 9), rng.integers(1, 40)),
            copy("any", 257, 0, 5),
            copy("neighbours", 256 * rng.integers(4, 7) + 40, 8, 0),
        ]

    def at(self, rng, place):
        return self.copied(rng, "any", place["n"], place["stride"], place["offset"])

    def result(self, inputs):
        return {"out": ((inputs["count"],), "float32")}

    def plan(self, inputs):
        return -(-inputs["count"] // 256), 256

    def reference(self, inputs):
        return {
            "out": inputs["x"][np.arange(inputs["count"]) * inputs["stride"] + inputs["offset"]].astype(
                np.float64
            )
        }

    def bounds(self, inputs):
        fewest = sectors(inputs["count"])
        return {"neighbours": Bound("global_write.sectors", fewest, 2 * fewest, "sectors written")}


class Picture(KernelTask):
    """A kernel over a matrix `x` in blocks of 32 x 32 threads, one for each element of x."""

    arguments = ("x", "out")
    yardstick = COPY
    domain = {
        "rows": Whole(),
        "cols": Whole(),
        "x": Values("float32", PLAIN, "equal", "negative", "subnormal"),
    }

    def fits(self, place):
        return place["rows"] * place["cols"] <= 4200

    def at(self, rng, place):
        case = self.picture("ragged", rng, place["rows"], place["cols"])
        case.inputs["x"][:] = self.domain["x"].draw(rng, place["x"], case.inputs["x"].shape)
        return case

    def picture(self, item, rng, rows, cols):
        x = rng.normal(size=(int(rows), int(cols))).astype(np.float32)
        return Case(f"{item}, {rows} x {cols}", {"x": x}, item)

    def make_timed(self, rng):
        """32 MiB in and 32 MiB out, with tiles partly outside."""
        return [self.picture("time", rng, 4088, 2040)]

    def plan(self, inputs):
        rows, cols = inputs["x"].shape
        return (-(-cols // TILE), -(-rows // TILE)), (TILE, TILE)


@task("ps05/transpose", points=16)
class Transpose(Picture):
    """out[col, row] = x[row, col]."""

    entry = "transpose"
    items = (
        Item("aligned", 3, title="Sides that are multiples of 32"),
        Item("ragged", 2, title="Any other size"),
        Item("sectors", 4, "structure", "Whole sectors, both ways"),
        Item("banks", 4, "structure", "No bank conflicts"),
        Item("time", 3, "time", "Time, against a copy of the same bytes (CUDA only)"),
    )

    def make_cases(self, rng):
        side = TILE * rng.permutation([2, 3, 4])
        return [
            self.picture("aligned", rng, side[0], side[1]),
            self.picture("ragged", rng, 1, 1),
            self.picture("ragged", rng, 37, 2 * rng.integers(20, 45) + 1),
            self.picture("ragged", rng, 2 * rng.integers(20, 45) + 1, 5),
            # counted where tiles are partly outside and rows still begin at the start of a sector
            self.picture("sectors", rng, 88, 56),
            self.picture("banks", rng, 56, 88),
        ]

    def result(self, inputs):
        return {"out": (inputs["x"].shape[::-1], "float32")}

    def reference(self, inputs):
        return {"out": inputs["x"].T.astype(np.float64)}

    def bounds(self, inputs):
        """Each element is read and written once.

        The naive store writes a sector per lane: (1 + 8) / 2 times the smallest count. A tile 32 words wide
        has 31 conflicts for each load of a column, one 34 wide has one.

        Time: with a padded table a transpose moves as many bytes as a copy, and adds a shared-memory access
        and a barrier for a block of 1,024 threads: full points up to twice the time of a copy. Published
        measurements put padded kernels at 1.1 to 1.2 times a copy's time and naive ones at 3 times or more.
        Provisional: not yet recorded on a GPU.
        """
        fewest = 2 * sectors(inputs["x"].shape)
        requests = inputs["x"].size / 32
        return {
            "sectors": Bound("global_memory.sectors", 1.1 * fewest, 2 * fewest, "sectors"),
            # counted with the requests, so that a kernel without a table does not pass for one without
            # conflicts
            "banks": Bound(
                "shared_memory.bank_conflicts + global_memory.sectors",
                1.02 * fewest,
                1.02 * fewest + 4 * requests,
                "bank conflicts and sectors",
            ),
            "time": Bound("time.ratio_low", 2.0, 4.0, "times the time of a copy"),
        }


@task("ps05/stencil_shared", points=16)
class StencilShared(Picture):
    """Heat: out = x + 0.1 (up + down + left + right - 4 x), with 0 outside the picture."""

    entry = "stencil_shared"
    items = (
        Item("inside", 3, title="The inside of the picture"),
        Item("borders", 2, title="The borders: zero outside"),
        Item("ragged", 3, title="Sizes that are no multiples of 32"),
        Item("sectors", 5, "structure", "Each pixel is fetched about once"),
        Item("time", 3, "time", "Time, against a copy of the same bytes (CUDA only)"),
    )

    def make_cases(self, rng):
        rows, cols = 2 * rng.integers(20, 50, 2) + 1
        return [
            self.picture("inside", rng, 64, 96),
            self.picture("borders", rng, 32, 64),
            self.picture("ragged", rng, 1, 1),
            self.picture("ragged", rng, 33, 31),
            self.picture("ragged", rng, rows, cols),
            self.picture("sectors", rng, 88, 120),
        ]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def reference(self, inputs):
        x = np.pad(inputs["x"].astype(np.float64), 1)
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return {"out": x[1:-1, 1:-1] + 0.1 * (around - 4 * x[1:-1, 1:-1])}

    def tolerance(self, inputs, expected):
        """Eight roundings of values up to the largest sum of magnitudes, at least the smallest float32; the
        border is not compared for the row on the inside.
        """
        return {"out": sum_tolerance(8, 10 * np.abs(inputs["x"]).max()) + 8 * 2.0**-149}

    def wrong_result(self, case, outcome):
        if case.item != "inside":
            return super().wrong_result(case, outcome)
        want, limit = self.expected(case)
        border = np.ones(want["out"].shape, bool)
        border[1:-1, 1:-1] = False
        case.memo["expected"] = want, {"out": np.where(border, np.inf, limit["out"])}
        return super().wrong_result(case, outcome)

    def bounds(self, inputs):
        """A row of a tile with halo has 34 floats, in a request of 32 and one of 2, and touches 7 sectors
        instead of 4; there are 34 rows instead of 32: 1.86 times the smallest count, a little less at the
        borders of the picture. Five loads per pixel read 22 sectors, 5.5 times as many.

        Time: a copy's bytes, 1.4 times as many sectors in all, four loads for the halo (most of them with few
        active lanes) and a barrier: full points up to 3 times the time of a copy. Five loads per pixel may
        earn them, too, if four of them hit the caches; slow on any GPU are a sum in 64 bits and a table that
        is loaded along columns. Provisional: not yet recorded on a GPU.
        """
        fewest = sectors(inputs["x"].shape)
        return {
            "sectors": Bound("global_read.sectors", 1.9 * fewest, 3.8 * fewest, "sectors read"),
            "time": Bound("time.ratio_low", 3.0, 8.0, "times the time of a copy"),
        }


@task("ps05/roofline_place", points=8)
class RooflinePlace(Task):
    """The position of a kernel in a hierarchical roofline, with one roof for each level of memory.

    For each level: intensity = flops / moved, roof = intensity * bandwidth. attainable: the lowest of the
    roofs and the peak. binds: the index of that level, or the number of levels if the peak is the lowest.
    share = flops / seconds / attainable.
    """

    entry = "roofline_place"
    arguments = ("flops", "moved", "seconds", "peak", "bandwidths")
    returns = {"intensities": "numbers", "attainable": "numbers", "binds": "integers", "share": "numbers"}
    items = (
        Item("intensities", 2, title="Arithmetic intensity at each level"),
        Item("memory", 2, title="Kernels that a level of memory binds"),
        Item("tie", 1, title="A roof as high as the peak"),
        Item("compute", 2, title="Kernels that arithmetic binds"),
        Item("share", 1, title="The share of the lowest roof that was reached"),
    )
    domain = {
        "levels": Whole(upto=9),
        "binds": Choice("the first level", "the last level", "a level as high as the peak", "arithmetic"),
    }
    corners = 8

    @staticmethod
    def kernel(rng, item, levels, lowest, height, only):
        """The roof of level `lowest` is `height` times the peak, those of the others are higher."""
        peak = float(rng.uniform(10e12, 1e15))
        bandwidths = np.sort(rng.uniform(0.3e12, 40e12, levels))[::-1]  # the nearest level is the fastest
        flops = float(peak * rng.uniform(1e-6, 1e-3))
        if height == 1:  # powers of two, so that a tie is exact in any order of the operations
            peak, bandwidths, flops = (
                2.0 ** np.round(np.log2(number)) for number in (peak, bandwidths, flops)
            )
        heights = height * rng.uniform(1.1, 8, levels)
        heights[lowest] = height
        inputs = {
            "flops": float(flops),
            "moved": (flops * bandwidths / (heights * peak)).tolist(),
            "seconds": float(flops / peak / min(1.0, height) / rng.uniform(0.2, 0.95)),
            "peak": float(peak),
            "bandwidths": bandwidths.tolist(),
        }
        return Case(f"{item}, {levels} levels, the lowest roof at {height:.2f} peaks", inputs, item, only)

    def make_cases(self, rng):
        kernel = functools.partial(self.kernel, rng)
        found = ("attainable", "binds")
        low, high = float(rng.uniform(0.01, 0.5)), float(rng.uniform(2, 20))
        return [
            kernel("intensities", 3, 0, 0.3, ("intensities",)),
            kernel("intensities", 2, 1, 3.0, ("intensities",)),
            *(kernel("memory", 3, level, low, found) for level in rng.permutation(3)),
            kernel("memory", 2, 1, 0.97, found),
            kernel("tie", 3, 1, 1.0, found),
            kernel("compute", 3, int(rng.integers(3)), high, found),
            kernel("compute", 2, 0, 1.03, found),
            kernel("share", 3, 2, 0.4, ("share",)),
            kernel("share", 3, 1, 4.0, ("share",)),
        ]

    def at(self, rng, place):
        levels, binds = place["levels"], place["binds"]
        lowest = levels - 1 if binds == "the last level" else 0
        item, height = {
            "arithmetic": ("compute", float(rng.uniform(1.5, 20))),
            "a level as high as the peak": ("tie", 1.0),
        }.get(binds, ("memory", float(rng.uniform(0.01, 0.1))))  # all roofs below the peak
        return self.kernel(rng, item, levels, lowest, height, ("attainable", "binds"))

    def reference(self, inputs):
        intensities = inputs["flops"] / np.array(inputs["moved"])
        limits = np.append(intensities * np.array(inputs["bandwidths"]), inputs["peak"])
        attainable = limits.min()
        share = inputs["flops"] / inputs["seconds"] / attainable
        found = intensities, attainable, limits.argmin(), share
        return {name: np.array(value) for name, value in zip(self.returns, found, strict=True)}

    def tolerance(self, inputs, expected):
        return {name: 1e-9 * np.abs(value) for name, value in expected.items() if name != "binds"}


LEVELS = ("fp32", "fp64", "l1", "l2", "hbm")
FP32, FP64, L1, L2, HBM = range(len(LEVELS))
NOTHING, SINGLE, PAD, TURN, HALF = 0, soundings.SINGLE, soundings.PAD, soundings.TURN, soundings.HALF


class Wanted(NamedTuple):
    """Conditions on a case of find_the_limit: the level that binds, and the change that lowers it most.

    `applied`: changes that are already made. `idle`: another level would bind if SMs without a block counted
    as busy. `crowded`: at least two blocks per SM. `then`: the levels one of which binds after the change.
    """

    item: str
    kernel: str
    binds: int
    change: int | None = None
    applied: tuple = ()
    then: tuple = ()
    idle: bool = False
    crowded: bool = False


WANTED = (
    Wanted("binds", "refined", FP32, applied=(SINGLE,)),
    Wanted("binds", "refined", FP64),
    Wanted("binds", "plotted", L1),
    Wanted("binds", "listed", L1, applied=(SINGLE,)),
    Wanted("binds", "listed", L2, applied=(TURN,)),
    Wanted("binds", "plotted", HBM, applied=(PAD,)),
    Wanted("binds", "plotted", L1, applied=(SINGLE,), idle=True),
    Wanted("change", "refined", FP32, NOTHING, (SINGLE,)),
    Wanted("change", "listed", L1, NOTHING, (SINGLE, TURN)),
    Wanted("change", "listed", FP64, SINGLE, (TURN,)),
    Wanted("change", "plotted", L1, PAD),
    Wanted("change", "listed", L1, TURN),
    Wanted("change", "plotted", HBM, HALF, (PAD,)),
    Wanted("change", "refined", L2, HALF),
    Wanted("factor", "refined", FP64, SINGLE, then=(FP32,)),
    Wanted("factor", "plotted", L1, PAD, then=(L2, HBM), crowded=True),
    Wanted("factor", "plotted", L1, PAD, then=(L1,)),
    Wanted("factor", "listed", L1, TURN, (SINGLE,), then=(L1,)),
    Wanted("factor", "listed", L1, TURN, (SINGLE,), then=(L2, HBM), idle=True),
    Wanted("factor", "plotted", HBM, HALF, (SINGLE, PAD), then=(L1,)),
    Wanted("factor", "listed", HBM, HALF, (SINGLE, TURN), then=(HBM,)),
    Wanted("factor", "refined", L2, HALF, (SINGLE,), then=(L2,)),
    Wanted("factor", "refined", FP32, NOTHING, (SINGLE,)),
)


def seconds_by_level(counts, device, idle=True):
    """The bounds of a launch in the order of LEVELS, s; `idle`: an SM without a block does nothing."""
    busy = min(1.0, counts["blocks"] / device["sms"]) if idle else 1.0
    wavefronts = counts["wavefronts"] + counts["global_wavefronts"]
    return [
        counts["fp32"] / device["fp32"] / busy,
        counts["fp64"] / device["fp64"] / busy,
        WAVEFRONT * wavefronts / device["l1"] / busy,
        (counts["fetched"] + counts["written"]) / device["l2"],
        counts["fetched"] / device["hbm"],
    ]


@task("ps05/find_the_limit", points=12)
class FindTheLimit(Task):
    """The level that bounds a launch on a device, the change that lowers the bound most, and its speedup.

    The bound is the largest of seconds_by_level(). The effect of a change is counted on the changed kernel
    (warplab.tasks.soundings); a change that does not apply leaves the launch unchanged.
    """

    entry = "find_the_limit"
    arguments = ("counts", "device")
    returns = {"binds": "integers", "change": "integers", "factor": "numbers"}
    items = (
        Item("binds", 4, title="What binds"),
        Item("change", 4, title="The change that lowers the bound most"),
        Item("factor", 4, title="How many times lower the bound is then"),
    )
    no_domain = (
        "counts of three kernels that are given, and devices drawn until each wanted level binds: see WANTED"
    )

    def make_cases(self, rng):
        # rows are multiples of 128 bytes, also in float16: a column lies in one bank
        small, large = ((64 * rng.integers(*sides, 2)).tolist() for sides in ((1, 3), (3, 6)))
        return [self.drawn(rng, wanted, small, large) for wanted in WANTED]

    def drawn(self, rng, wanted, small, large):
        """A case on the first of many random devices on which the launch meets the conditions."""
        for _ in range(20_000):
            rows, cols = small if wanted.idle or rng.random() < 0.3 else large
            inputs = {
                "counts": soundings.counted(wanted.kernel, wanted.applied, rows, cols),
                "device": self.draw_device(rng),
                "launch": [wanted.kernel, list(wanted.applied), rows, cols],
            }
            if self.shows(inputs, wanted):
                told = f"{wanted.item}, {wanted.kernel} {rows} x {cols}, {inputs['device']['sms']} SMs"
                return Case(told, inputs, wanted.item, (wanted.item,))
        raise ValueError(f"no device was drawn for {wanted}")

    @staticmethod
    def draw_device(rng):
        """Peaks and bandwidths per second, in the range of GPUs since 2018."""
        sms, clock = int(rng.integers(16, 145)), float(rng.uniform(1.2e9, 2.5e9))
        hbm = float(rng.uniform(0.3e12, 8e12))
        fp32 = 2 * 128 * sms * clock  # 128 lanes an SM, an FMA is two operations
        return {
            "sms": sms,
            "fp32": fp32,
            "fp64": fp32 / int(rng.choice([2, 32, 64])),
            "l1": WAVEFRONT * sms * clock,
            "l2": hbm * float(rng.uniform(1.3, 4)),
            "hbm": hbm,
        }

    def shows(self, inputs, wanted):
        """Whether a launch meets the conditions, with 10 % between the first and the second."""
        counts, device = inputs["counts"], inputs["device"]
        levels = seconds_by_level(counts, device)
        if np.argmax(levels) != wanted.binds or 1.1 * sorted(levels)[-2] > levels[wanted.binds]:
            return False
        if wanted.idle and np.argmax(seconds_by_level(counts, device, idle=False)) == wanted.binds:
            return False
        if wanted.crowded and counts["blocks"] < 2 * device["sms"]:
            return False
        if wanted.change is None:
            return True
        bounds = self.bounds_after(inputs)
        best = min(bounds, key=lambda change: bounds[change])
        others = [bound for one, bound in bounds.items() if one != best]
        if best != wanted.change or (best != NOTHING and 1.1 * bounds[best] > min(others)):
            return False
        after = seconds_by_level(self.changed(inputs, best), device)
        return not wanted.then or np.argmax(after) in wanted.then

    def wrong_result(self, case, outcome):
        """A wrong number is reported with the five times, from which it can be computed by hand."""
        wrong = super().wrong_result(case, outcome)
        if wrong is None or outcome is None or outcome.error:
            return wrong
        times = seconds_by_level(case.inputs["counts"], case.inputs["device"])
        told = ", ".join(
            f"{level.upper()} {number(1e9 * time)}" for level, time in zip(LEVELS, times, strict=True)
        )
        return f"{wrong}; nanoseconds before any change: {told}"

    @staticmethod
    def changed(inputs, change):
        """The counts of the launch with one more change made to its kernel."""
        name, applied, rows, cols = inputs["launch"]
        found = {change} & set(soundings.FAULTS[name])
        return soundings.counted(name, found.union(applied), rows, cols)

    def bounds_after(self, inputs):
        """{change: the longest bound with it, s}."""
        return {
            change: max(seconds_by_level(self.changed(inputs, change), inputs["device"]))
            for change in (NOTHING, SINGLE, PAD, TURN, HALF)
        }

    def reference(self, inputs):
        bounds = self.bounds_after(inputs)
        best = min(bounds, key=lambda change: bounds[change])
        binds = np.argmax(seconds_by_level(inputs["counts"], inputs["device"]))
        found = binds, best, bounds[NOTHING] / bounds[best]
        return {name: np.array(value) for name, value in zip(self.returns, found, strict=True)}

    def tolerance(self, inputs, expected):
        return {"factor": 0.001 * expected["factor"]}


@task("ps05/softmax_online", points=14)
class SoftmaxOnline(KernelTask):
    """Each row of x becomes exp(x - max) / sum(exp(x - max)); a block of 128 threads for each row."""

    entry = "softmax_online"
    arguments = ("x", "out")
    yardstick = COPY
    UNEVEN = 2.0  # a tree has 1.3; more if thread 0 merges all pairs
    items = (
        Item("right", 3, title="Right for rows of any length"),
        Item("large", 3, title="Right for numbers far from zero"),
        Item("two_reads", 5, "structure", "The row is read twice, not three times"),
        Item("time", 3, "time", "Time, against a copy of the same bytes (CUDA only)"),
    )
    domain = {
        "rows": Whole(upto=9),
        "n": Whole(),
        "x": Values(
            "float32",
            PLAIN,
            "rising",
            "falling",
            "ties",
            "subnormal",
            "below -1e9",
            "equal, far below -1e9",
            "largest",
        ),
    }
    corners = 8

    @staticmethod
    def rows(rng, item, count, length, size=1.0, centre=0.0):
        x = (centre + size * rng.normal(size=(count, int(length)))).astype(np.float32)
        return Case(f"{item}, {so_many(count, 'row')} of {length}", {"x": x}, item)

    def make_cases(self, rng):
        below = self.rows(rng, "large", 1, 200, 30.0, -900.0)
        below.inputs["x"].sort()  # so that every element of a thread is a new maximum
        return [
            self.rows(rng, "right", 3, 128),
            self.rows(rng, "right", 2, 1),
            self.rows(rng, "right", 2, 2 * rng.integers(100, 300) + 1),
            self.rows(rng, "right", 1, 33),
            self.rows(rng, "large", 2, 300, 60.0),
            below,
            self.rows(rng, "large", 1, 65, 2000.0, -4e9),  # below any finite substitute for minus infinity
            self.rows(rng, "two_reads", 5, 1024, 30.0, 300.0),  # exp of these overflows
        ]

    def at(self, rng, place):
        case = self.rows(rng, "right", place["rows"], place["n"])
        case.inputs["x"][:] = self.domain["x"].draw(rng, place["x"], case.inputs["x"].shape)
        far = np.abs(case.inputs["x"]).max() > 100
        return replace(case, item="large", name=case.name.replace("right", "large")) if far else case

    def make_timed(self, rng):
        """32 MiB in and 32 MiB out."""
        return [self.rows(rng, "time", 4096, 2048)]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def plan(self, inputs):
        return inputs["x"].shape[0], ROW_BLOCK

    def reference(self, inputs):
        powers = np.exp(inputs["x"].astype(np.float64) - inputs["x"].max(axis=1, keepdims=True))
        return {"out": powers / powers.sum(axis=1, keepdims=True)}

    def tolerance(self, inputs, expected):
        """x - max is rounded once, which exp turns into a relative error of |x - max| u; exp itself, each
        rescaling of the sum (at most one per element of a thread and eight in the tree) and the division add
        a few u.
        """
        unit = 2.0**-24
        reach = np.abs(inputs["x"].astype(np.float64) - inputs["x"].max(axis=1, keepdims=True))
        steps = inputs["x"].shape[1] / ROW_BLOCK + 8
        return {"out": expected["out"] * unit * (4 * reach.max() + 8 * steps + 16) + 1e-37}

    def bounds(self, inputs):
        """Two reads and a write of every element.

        Separate passes for the maximum, the sum and the result make three reads.

        Time: the second read of a row, 8 KiB, hits a cache, so HBM moves as many bytes as for a copy. In
        addition there are three dependent exponentials per element, and a tree: full points up to 4 times
        the time of a copy. Three passes earn them as well, since the third read hits the cache, too. One
        thread per row is far beyond 12. Provisional: not yet recorded on a GPU.
        """
        once = sectors(inputs["x"].shape)
        return {
            "two_reads": Bound("global_memory.sectors", 3.15 * once, 3.9 * once, "sectors"),
            "time": Bound("time.ratio_low", 4.0, 12.0, "times the time of a copy"),
        }


@task("ps05/flash_attention", points=13)
class FlashAttention(KernelTask):
    """out = softmax(q k^T / 4) v for vectors of 16 numbers; a block of 64 threads for every 64 queries."""

    entry = "flash_attention"
    arguments = ("q", "k", "v", "out")
    items = (
        Item("aligned", 2, title="As many tokens as fit the blocks"),
        Item("ragged", 2, title="Any number of tokens"),
        Item("large", 3, title="Scores far from zero"),
        Item("sectors", 6, "structure", "Keys and values are fetched once a block"),
    )
    domain = {"n": Whole(upto=66), "scores": Choice(PLAIN, "equal", "below -1e9", "beyond 1e9")}

    @staticmethod
    def tokens(rng, item, count, size=1.0, sign=None):
        """Queries are `size` times as large as keys and values; with sign -1 every score is negative."""
        inputs = {name: rng.normal(size=(int(count), HEAD)).astype(np.float32) for name in "qkv"}
        inputs["q"] *= np.float32(size)
        if sign:
            inputs["q"], inputs["k"] = np.abs(inputs["q"]), sign * np.abs(inputs["k"])
        return Case(f"{item}, {so_many(count, 'token')}", inputs, item)

    def make_cases(self, rng):
        tokens = functools.partial(self.tokens, rng)
        return [
            tokens("aligned", 64),
            tokens("ragged", 1),
            tokens("ragged", 2 * rng.integers(33, 50) + 1),  # more than a block
            tokens("large", 128, 40.0),
            tokens("large", 64, 100.0, -1),
            tokens("sectors", 248),  # the last block is not full
        ]

    def at(self, rng, place):
        """Queries and keys far from zero are integers times a power of two: exact in any order."""
        scores = place["scores"]
        row, n = ("ragged", place["n"]) if scores == PLAIN else ("large", -(-place["n"] // QUERIES) * QUERIES)
        case = self.tokens(rng, row, n)
        shape = case.inputs["q"].shape
        if scores != PLAIN:
            case.inputs["k"][:] = rng.integers(1, 3, shape)
            case.inputs["q"][:] = rng.integers(1, 3, shape) * (-1.0 if scores.startswith("below") else 1.0)
            case.inputs["exact"] = 1
        if scores == "equal":
            case.inputs["k"][:] = 1
        elif scores != PLAIN:
            case.inputs["q"] *= np.float32(2.0**30)
        return case

    def result(self, inputs):
        return {"out": (inputs["q"].shape, "float32")}

    def plan(self, inputs):
        return -(-len(inputs["q"]) // QUERIES), QUERIES

    def reference(self, inputs):
        q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
        scores = q @ k.T / 4
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return {"out": weights / weights.sum(axis=1, keepdims=True) @ v}

    def tolerance(self, inputs, expected):
        """A score is a sum of 16 products; its absolute error is the relative error of a weight.

        The result is a mean of the values with these weights, whose sum has n terms with a rescaling each.
        """
        q, k, v = (np.abs(inputs[name].astype(np.float64)) for name in "qkv")
        score = 0.0 if "exact" in inputs else 2 * sum_tolerance(HEAD, (q @ k.T).max() / 4)
        return {"out": (2 * score + 2.0**-24 * (6 * len(q) + 32)) * v.max()}

    def bounds(self, inputs):
        """k and v are read once per block; q and out once, where eight times the sectors are allowed for
        threads that each read a row. Without a table every warp reads every key and value, float by float.

        There is no row for time: at every length whose square NumPy can check in a second or two, one head in
        blocks of 64 threads leaves most of a GPU idle, and the time would be the latency of a few warps.
        """
        once = sectors(inputs["q"].shape)
        full = 16 * once + 1.1 * 2 * self.plan(inputs)[0] * once
        return {"sectors": Bound("global_memory.sectors", full, 2.5 * full, "sectors")}


BINS = 32  # in task "echoes": the strengths of an echo, and the lanes of a block


@task("ps05/echoes_cause", points=2)
class EchoesCause(Task):
    """The bank conflicts of the given program's `table[32 * lane + x[i]] += 1` by one warp: the strength
    alone decides the bank.
    """

    entry = "echoes_cause"
    arguments = ("strengths",)
    returns = {"conflicts": "integers"}
    items = (
        Item("calm", 1, title="A calm sea: few strengths, many times each"),
        Item("drawn", 1, title="Any strengths"),
    )
    domain = {"different": Whole(1, BINS, says=("0 to 31",))}

    @staticmethod
    def asked(rng, item, different):
        """The strengths of a warp's echoes, `different` distinct ones."""
        kinds = rng.permutation(BINS)[: int(different)]
        strengths = np.concatenate([kinds, rng.choice(kinds, BINS - len(kinds))])
        name = f"{item}, {so_many(int(different), 'different strength')}"
        return Case(name, {"strengths": [int(n) for n in rng.permutation(strengths)]}, item)

    def make_cases(self, rng):
        sizes = [
            ("calm", 1),
            ("calm", 2),
            ("calm", 3),
            ("drawn", 32),
            ("drawn", 31),
            ("drawn", 20),
            ("drawn", 9),
        ]
        return [self.asked(rng, *size) for size in sizes]

    def at(self, rng, place):
        return self.asked(rng, "calm" if place["different"] < 4 else "drawn", place["different"])

    def reference(self, inputs):
        """A load and a store; in each the lanes with the same strength conflict."""
        return {"conflicts": np.array(2 * (np.bincount(inputs["strengths"]).max() - 1))}


@task("ps05/echoes", points=6)
class Echoes(KernelTask):
    """A histogram of x with 32 bins, by warps with a table for each lane: a program to mend."""

    entry = "echoes"
    arguments = ("x", "out")
    atomics = True
    items = (
        Item("right", 2, title="Right for any number of echoes and of blocks"),
        Item("banks", 3, "structure", "No bank conflicts while it counts"),
        Item("handed_in", 1, "structure", "Each echo is read once, each block hands in 32 sums"),
    )
    domain = {
        "n": Whole(upto=4200),
        "blocks": Whole(upto=9),
        "x": Choice("drawn", "calm", "strongest"),
    }
    ROUNDS = 512  # of each lane, in the cases that are counted

    @staticmethod
    def sea(rng, item, count, blocks, kind="drawn"):
        least, most = {"drawn": (0, BINS), "calm": (7, 8), "strongest": (BINS - 1, BINS)}[kind]
        inputs = {
            "x": rng.integers(least, most, int(count)).astype(np.int32),
            "out": np.zeros(BINS, np.int32),
            "blocks": int(blocks),
        }
        told = f"{item}, {so_many(count, 'number')}, {so_many(blocks, 'block')} of {BINS}"
        return Case(told, inputs, item)

    def make_cases(self, rng):
        sea = functools.partial(self.sea, rng)
        many = BINS * 4 * self.ROUNDS
        return [
            sea("right", 1024, 2),
            sea("right", 1, 1),
            sea("right", int(2 * rng.integers(200, 900)) + 1, 3),
            sea("right", 33, 4),
            sea("banks", many, 4, "calm"),
            sea("banks", many, 4),
            sea("handed_in", many, 4),
        ]

    def at(self, rng, place):
        return self.sea(rng, "right", place["n"], place["blocks"], place["x"])

    def result(self, inputs):
        return {"out": ((BINS,), "int32")}

    def plan(self, inputs):
        return inputs["blocks"], BINS

    def reference(self, inputs):
        return {"out": np.bincount(inputs["x"], minlength=BINS)}

    def bounds(self, inputs):
        """Sectors of global memory are counted together with the conflicts, so that a kernel without a table
        does not pass.

        A calm sea costs the given program 62 conflicts for each echo of a lane, a rough one about five, with
        and without a word of padding. Clearing the table along columns, or summing it along columns, costs
        992 per block, once: one of the two is allowed.

        A block adds 32 sums to `out`: in one request its atomics read and write 4 sectors; one at a time each
        reads and writes a sector, 96 in all. Adding the counts of every lane separately makes 1,024 additions
        per block, half as many as the cases have sectors to read.
        """
        blocks, read = inputs["blocks"], inputs["x"].size / 8
        banks = "shared_memory.bank_conflicts + global_read.sectors + atomics.lanes"
        handed = "global_memory.sectors + atomics.lanes"
        return {
            "banks": Bound(
                banks, read + 1100 * blocks, read + 2300 * blocks, "conflicts, sectors, sums handed in"
            ),
            "handed_in": Bound(handed, read + 96 * blocks, 1.5 * read, "sectors, and sums handed in"),
        }
