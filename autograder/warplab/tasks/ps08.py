"""Problem set 8, the stack: a fused kernel, its autograd function, overlapping streams, graphs, timers, PTX,
and two debugging tasks: a kernel from its profiler report, streams from the virtual device's messages.
"""

import functools
import math

import numpy as np

from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, KernelTask, Task, VjpTask, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many

UNIT = 2.0**-24  # unit roundoff of float32
C = math.sqrt(2 / math.pi)
BANDWIDTH = 25e9  # bytes per second of the virtual device's link


def gelu(z):
    """GELU in its tanh form, float64: z / 2 * (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3)))."""
    return 0.5 * z * (1 + np.tanh(C * (z + 0.044715 * z * z * z)))


@task("ps08/fused_bias_gelu", points=16)
class FusedBiasGelu(KernelTask):
    """out = gelu(x + bias), the bias added to every row, in one pass."""

    entry = "fused_bias_gelu"
    arguments = ("x", "bias", "out")
    yardstick = COPY
    # PTX instructions per warp: see bounds().
    SINGLE = 96
    items = (
        Item("whole", 3, title="Sides that the blocks cover exactly"),
        Item("ragged", 4, title="Any other size"),
        Item("one_pass", 4, "structure", "Each number is read once and written once"),
        Item("single", 2, "structure", "No double precision by accident"),
        Item("time", 3, "time", "Time, against a copy of the same bytes (CUDA only)"),
    )
    domain = {
        "rows": Whole(),
        "cols": Whole(),
        "x": Values("float32", PLAIN, "zeros", "negative", "large"),
    }

    @staticmethod
    def layer(rng, item, rows, cols):
        x, bias = (
            2 * rng.standard_normal((int(rows), int(cols)), np.float32),
            rng.standard_normal(int(cols), np.float32),
        )
        return Case(f"{item}, {rows} x {cols}", {"x": x, "bias": bias}, item)

    def make_cases(self, rng):
        return [
            self.layer(rng, "whole", 16, 64),
            self.layer(rng, "ragged", 1, 1),
            self.layer(rng, "ragged", 2 * rng.integers(4, 20) + 1, 2 * rng.integers(20, 60) + 1),
            self.layer(rng, "one_pass", 32, 128),
            self.layer(rng, "single", 32, 128),
        ]

    def fits(self, place):
        return place["rows"] * place["cols"] <= 4200

    def at(self, rng, place):
        case = self.layer(rng, "ragged", place["rows"], place["cols"])
        case.inputs["x"][:] = self.domain["x"].draw(rng, place["x"], case.inputs["x"].shape)
        return case

    def make_timed(self, rng):
        """32 MiB in and 32 MiB out."""
        return [self.layer(rng, "time", 4096, 2048)]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def plan(self, inputs):
        rows, cols = inputs["x"].shape
        return (-(-cols // 32), -(-rows // 8)), (32, 8)

    def reference(self, inputs):
        return {"out": gelu(inputs["x"].astype(np.float64) + inputs["bias"])}

    def tolerance(self, inputs, expected):
        """About ten roundings. The error of the cube grows with z^3, but tanh is flat where z is large;
        |gelu| <= |z|, and the rounding errors are proportional to it.
        """
        z = np.abs(inputs["x"].astype(np.float64)) + np.abs(inputs["bias"])
        return {"out": 32 * UNIT * (1 + z)}

    def bounds(self, inputs):
        """Sectors: x and out once, and four sectors of the bias per warp of 32 columns: three times the
        sectors of x. Writing `out` and reading it again makes it five times. Instructions: tanh in double
        precision alone takes more than our whole kernel; one double constant adds one FP64 operation per
        element.

        Time: with 96 instructions per warp the 132 SMs of an H100 issue for about as long as a copy takes, so
        a good kernel may take twice the time of a copy: full points up to 3 times, none from 9 on (rows and
        columns exchanged take 8 times the sectors). Provisional: not yet recorded on a GPU.
        """
        once, warps = inputs["x"].size / 8, inputs["x"].size / 32
        return {
            "one_pass": Bound("global_memory.sectors", 3.1 * once, 4.65 * once, "sectors"),
            "single": Bound(
                "warp_instructions + fp64_flops + fp64_flops",
                self.SINGLE * warps,
                1.4 * self.SINGLE * warps,
                "warp instructions, with two for each operation in 64 bits",
            ),
            "time": Bound("time.ratio_low", 3.0, 9.0, "times the time of a copy"),
        }


@task("ps08/custom_function", points=16)
class CustomFunction(VjpTask):
    """y = gelu(x + bias) with the gradients of x and of the bias, saving only x and the bias for backward."""

    entry = "BiasGelu"
    arguments = differentiable = ("x", "bias")
    items = (
        Item("y", 5, title="One row: the result and the gradients"),
        Item("rows", 8, title="Many rows: the bias serves them all"),
        Item("saved", 3, "structure", "Only x and the bias are kept between forward and backward"),
    )
    domain = {"rows": Whole(upto=65), "cols": Whole(upto=65)}

    @staticmethod
    def layer(rng, item, rows, cols):
        inputs = {
            name: rng.normal(0, 1.5, shape).astype(np.float32)
            for name, shape in (("x", (rows, cols)), ("bias", (cols,)), ("grad_out", (rows, cols)))
        }
        return Case(f"{item}, {rows} x {cols}", inputs, item)

    def make_cases(self, rng):
        layer = functools.partial(self.layer, rng)
        return [
            # enough elements that a constant rounded to four digits exceeds the tolerance on some
            layer("y", 1, int(rng.integers(48, 64))),
            layer("rows", int(rng.integers(3, 9)), 5),
            layer("rows", 2, 1),
            layer("saved", 16, 32),
        ]

    def fits(self, place):
        return place["rows"] * place["cols"] <= 140

    def at(self, rng, place):
        return self.layer(rng, "rows" if place["rows"] > 1 else "y", place["rows"], place["cols"])

    def forward(self, inputs):
        return gelu(inputs["x"].astype(np.float64) + inputs["bias"])

    def rounding(self, inputs):
        """As in FusedBiasGelu; the derivative takes a few more roundings, the bias's sums them by column."""
        z = np.abs(inputs["x"].astype(np.float64)) + np.abs(inputs["bias"])
        upstream = np.abs(inputs["grad_out"].astype(np.float64))
        each = 64 * UNIT * upstream * (1 + z) ** 2
        return {
            "y": 32 * UNIT * (1 + z),
            "grad_x": each,
            "grad_bias": each.sum(axis=0) + sum_tolerance(len(z), 2 * upstream.sum(axis=0)),
        }

    def bounds(self, inputs):
        """Autograd without a custom function saves the sum, the cube, the tanh and more: several arrays of
        the size of x. Saved arrays other than the inputs count twice, since saving only x + bias takes no
        more bytes than saving x and the bias.
        """
        fewest = inputs["x"].nbytes + inputs["bias"].nbytes
        return {
            "saved": Bound(
                "saved_bytes + made_bytes",
                1.05 * fewest,
                1.85 * fewest,
                "bytes kept, those that are not x or the bias twice",
            )
        }


@task("ps08/overlap", points=12)
class Overlap(Task):
    """Square the host array x into the host array y in pieces, so that copies to the device, kernels and
    copies to the host overlap.
    """

    entry, crossing = "overlap", "device"
    arguments = ("device", "pieces")
    returns = {"y": "numbers"}
    items = (
        Item("right", 5, title="y is complete when it is read, in room for six pieces"),
        Item("seconds", 7, "structure", "Copies and work overlap"),
    )
    domain = {"pieces": Whole(upto=33), "pace": Choice(1.0, 3.0, 0.25)}

    @staticmethod
    def job(rng, item, pieces, pace=1.0):
        inputs = {
            "x": rng.random(int(rng.integers(2, 5)) * (24_000 // pieces * pieces)),
            "pieces": pieces,
            "pace": pace,
        }
        told = "" if pace == 1 else f", work {pace:g} times as long as a copy"
        return Case(f"{item}, {so_many(pieces, 'piece')}{told}", inputs, item)

    def make_cases(self, rng):
        job = functools.partial(self.job, rng)

        # With 4 and with 5 pieces the last piece is on different ones of three streams.
        slow, fast = float(rng.integers(2, 6)), 1 / float(rng.integers(2, 6))
        right = (job("right", 4), job("right", 5, slow), job("right", 6, fast), job("right", 1))
        return [*right, job("seconds", 12)]

    def at(self, rng, place):
        return self.job(rng, "right", place["pieces"], place["pace"])

    def device(self, inputs):
        """A copy of n float64 takes 8 n / 25e9 s, the work `pace` times as long, and a host call almost no
        time. Device memory holds six pieces: a program that allocates two arrays per piece, as chapter 8
        does, runs out of memory at the fourth.
        """
        seconds = inputs["pace"] * 8 / BANDWIDTH
        timing = DeviceTiming(bandwidth=BANDWIDTH, copy_latency=0.0, launch_overhead=1e-9, sync_overhead=1e-9)
        host = {"x": inputs["x"], "y": np.zeros(inputs["x"].size)}
        room = 6 * inputs["x"].nbytes // inputs["pieces"]
        works = {"square": Work(np.square, seconds)}
        return VirtualDevice(timing, host, works, unread=("x",), memory=room)

    def reference(self, inputs):
        return {"y": inputs["x"] ** 2}

    def bounds(self, inputs):
        """Sequentially, with T for each, copy in, work and copy out take 3 T.

        Overlapped in 12 pieces they take T and two pieces more, 1.17 T.
        """
        whole = 8 * inputs["x"].size / BANDWIDTH
        return {"seconds": Bound("device.seconds", 1.3 * whole, 2.6 * whole, "s on the virtual clock")}


@task("ps08/cheat_the_timer", points=10)
class CheatTheTimer(Task):
    """Work that a careless timer measures as too short, and a careful timer that measures it right."""

    entry, crossing = "cheat_the_timer", "device"
    arguments = ("device", "which")
    returns = {"seconds": "numbers"}
    items = (
        Item("cheat", 3, title="The careless timer is cheated"),
        Item("caught", 5, title="The careful timer is not"),
        Item("honest", 2, title="Honest work is timed as before"),
    )
    no_domain = "its three questions, with and without earlier work, are all that it can be asked"

    def make_cases(self, rng):
        def timing(item, which, pending=0.0):
            timing = {"duration": float(rng.uniform(1e-3, 5e-3)), "noise": 0.0, "pending": pending}
            told = ", earlier work under way" if pending else ""
            return Case(f"{item}{told}", {"which": which, "timing": timing}, item)

        earlier = float(rng.uniform(2e-3, 9e-3))
        return [
            timing("cheat", "careless"),
            timing("caught", "careful"),
            timing("caught", "careful", earlier),
            timing("honest", "honest", earlier),
        ]

    def device(self, inputs):
        return VirtualDevice(DeviceTiming(**inputs["timing"]))

    def wrong_result(self, case, outcome):
        if outcome is not None and not outcome.error and outcome.counters.get("device.launches", 0) != 1:
            return f"the work was launched {outcome.counters.get('device.launches', 0):.0f} times, not once"
        return super().wrong_result(case, outcome)

    def reference(self, inputs):
        return {"seconds": np.array(0.0 if inputs["which"] == "careless" else inputs["timing"]["duration"])}

    def tolerance(self, inputs, expected):
        """The careless timer must show less than a tenth of the duration; the careful one may be off by 5 %,
        which includes the host's own calls.
        """
        return {"seconds": (0.1 if inputs["which"] == "careless" else 0.05) * inputs["timing"]["duration"]}


@task("ps08/read_ptx", points=11)
class ReadPtx(Task):
    """Counts in PTX text: loads from global memory, accesses to local memory, and multiply-adds that were not
    fused.

    missed: a mul.f32 whose result the next instruction adds (add.f32), where one fma.rn.f32 would do both.
    """

    entry = "read_ptx"
    arguments = ("ptx",)
    returns = {"loads": "integers", "local": "integers", "missed": "integers"}
    items = (
        Item("loads", 4, title="Loads from global memory"),
        Item("local", 3, title="Accesses to local memory: spills"),
        Item("missed", 4, title="Products whose sum was not fused"),
    )
    no_domain = (
        "each form of a line is drawn by itself and among others: PLAIN, LOADS, LOCAL, MISSED and NOT_MISSED"
    )
    PLAIN = (
        "add.s32 {r0}, {r1}, {r2};",
        "mad.lo.s32 {r0}, {r1}, {r2}, {r3};",
        "fma.rn.f32 {f0}, {f1}, {f2}, {f3};",
        "mul.f64 {d0}, {d1}, {d2};",
        "mul.rn.f32 {f0}, {f1}, {f2};\nsub.rn.f32 {f3}, {f1}, {f2};",
        "st.global.f32 [{rd0}], {f0};",
        "ld.shared.f32 {f0}, [{r0}+4];",
        "ld.param.u64 {rd0}, [kernel_param_0];",
        "bar.sync 0;",
        "$L__BB0_{n}:",
        "@%p1 bra $L__BB0_{n};",
        "// ld.global.f32 {f0}, [{rd0}]; was here",
    )
    LOADS = (
        "ld.global.f32 {f0}, [{rd0}];",
        "ld.global.nc.v4.f32 {{{f0}, {f1}, {f2}, {f3}}}, [{rd0}+16];",
        "@!%p2 ld.global.u32 {r0}, [{rd1}];",
        "ld.global.b64 {rd0}, [{rd1}];",
    )
    LOCAL = (
        "st.local.f32 [%SPL+{n}], {f0};",
        "ld.local.f32 {f0}, [%SPL+{n}];",
        "@%p3 ld.local.v2.f32 {{{f0}, {f1}}}, [%SPL];",
    )
    MISSED = (
        "mul.f32 {f0}, {f1}, {f2};\nadd.f32 {f3}, {f0}, {f1};",
        "mul.rn.f32 {f0}, {f1}, {f2}; // a product\nadd.rn.f32 {f3}, {f1}, {f0};",
        "mul.ftz.f32 {f0}, {f1}, 0f3F000000;\n@%p1 add.ftz.f32 {f0}, {f0}, {f2};",
        "mul.f32 {f0}, {f1}, {f2};\n\n\t// and its sum\nadd.f32 {f3}, {f0}, {f1};",
    )
    NOT_MISSED = (
        "mul.f32 {f0}, {f1}, {f2};\nadd.f32 {f3}, {f1}, {f2};",
        "mul.f32 {f0}, {f1}, {f2};\nmov.f32 {f1}, {f2};\nadd.f32 {f3}, {f0}, {f1};",
        "mul.f32 {f0}, {f1}, {f2};\nsub.f32 {f3}, {f0}, {f1};",
        "mul.f32 {f0}, {f1}, {f2};\nadd.f32 {f0}, {f1}, {f2};",
        "mul.f32 {r0}, {r1}, {r2};\nadd.s32 {r3}, {r0}, {r1};",
        "mul.lo.s32 {r0}, {r1}, {r2};\nadd.f32 {r3}, {r0}, {r1};",
    )

    def make_cases(self, rng):
        def registers(first, digits):
            """Register names such as %f3, %f30, %f31: the first is a prefix of the others."""
            numbers = [first, *(10 * first + digit for digit in digits)]
            return {
                f"{kind}{k}": f"%{kind}{n}" for kind in ("r", "f", "rd", "d") for k, n in enumerate(numbers)
            }

        def listing(item, loads, local, missed):
            pools = [
                (self.PLAIN, 25),
                (self.LOADS, loads),
                (self.LOCAL, local),
                (self.MISSED, missed),
                (self.NOT_MISSED, len(self.NOT_MISSED)),
            ]
            pieces = [
                pool[k % len(pool)] for pool, count in pools for k in range(int(count))
            ]  # in turn, so that every seed tests every form
            lines = []
            for place in rng.permutation(len(pieces)):
                names = registers(int(rng.integers(1, 10)), rng.permutation(10)[:3])
                lines += [
                    f"\t{line}" for line in pieces[place].format(n=int(rng.integers(99)), **names).split("\n")
                ]
                lines.append("\tmov.u32 %r99, %tid.x;")  # so that no pair is formed across pieces
            text = (
                ".version 9.0\n.target sm_90\n.visible .entry kernel(.param .u64 kernel_param_0)\n{\n"
                + "\n".join(lines)
                + "\n\tret;\n}\n"
            )
            inputs = {"ptx": text, "counts": [int(loads), int(local), int(missed)]}
            return Case(f"{item}, {len(lines)} lines", inputs, item, (item,))

        def alone(item, form, counted):
            """A listing of one form, so that the message names the form that is miscounted."""
            text = form.format(n=8, **registers(3, range(3)))
            counts = [int(counted and item == name) for name in self.returns]
            told = " ".join(text.split())
            return Case(f"{item}, only `{told}`", {"ptx": f"\t{text}\n", "counts": counts}, item, (item,))

        return [
            *(alone("loads", form, True) for form in self.LOADS),
            *(alone("loads", form, False) for form in self.PLAIN if "ld." in form),
            *(alone("local", form, True) for form in self.LOCAL),
            *(alone("missed", form, True) for form in self.MISSED),
            *(alone("missed", form, False) for form in self.NOT_MISSED),
            listing("loads", rng.integers(len(self.LOADS), 12), 2, 2),
            listing("loads", 0, 3, 1),
            listing("local", 4, rng.integers(len(self.LOCAL), 9), 1),
            listing("local", 2, 0, 1),
            listing("missed", 3, 1, rng.integers(len(self.MISSED), 9)),
            listing("missed", 3, 1, 0),
        ]

    def reference(self, inputs):
        return {name: np.array(count) for name, count in zip(self.returns, inputs["counts"], strict=True)}


@task("ps08/read_report", points=12)
class ReadReport(KernelTask):
    """out[col] = 0.01 * sum of x[:, col], with blocks of 32 x 32 threads per 32 columns. The program to debug
    has a race, no bounds check, uncoalesced reads along the wrong axis, bank conflicts and an FP64 constant.
    """

    entry = "read_report"
    arguments = ("x", "out", "rows", "cols")
    SIDE = 32
    items = (
        Item("right", 2, title="No race, and sides that the blocks cover exactly"),
        Item("odd", 3, title="Any number of rows and columns"),
        Item("sectors", 3, "structure", "Each number is fetched once, in whole sectors"),
        Item("banks", 2, "structure", "No bank conflicts, and all threads at every barrier"),
        Item("single", 2, "structure", "No 64-bit arithmetic"),
    )
    domain = {"rows": Whole(upto=260), "cols": Whole(upto=260)}

    @staticmethod
    def matrix(rng, item, rows, cols):
        rows, cols = int(rows), int(cols)
        x = rng.uniform(100, 9000, (rows, cols)).astype(np.float32)
        return Case(f"{item}, {rows} x {cols}", {"x": x, "rows": rows, "cols": cols}, item)

    def make_cases(self, rng):
        matrix = functools.partial(self.matrix, rng)
        return [
            matrix("right", 64, 32 * rng.integers(2, 5)),
            matrix("right", 32, 32),
            matrix("odd", 1, 1),
            matrix("odd", 2 * rng.integers(17, 40) + 1, 2 * rng.integers(17, 40) + 1),
            matrix("odd", 5, 70),
            matrix("odd", 33, 31),
            matrix("sectors", 104, 88),
            matrix("banks", 88, 104),
            matrix("single", 96, 64),
        ]

    def at(self, rng, place):
        return self.matrix(rng, "odd", place["rows"], place["cols"])

    def result(self, inputs):
        return {"out": ((inputs["cols"],), "float32")}

    def plan(self, inputs):
        return -(-inputs["cols"] // self.SIDE), (self.SIDE, self.SIDE)

    def reference(self, inputs):
        return {"out": 0.01 * inputs["x"].astype(np.float64).sum(axis=0)}

    def tolerance(self, inputs, expected):
        """All terms are positive; the constant 0.01 is rounded, and the products may be."""
        return {"out": sum_tolerance(inputs["rows"] + 2, expected["out"])}

    def bounds(self, inputs):
        """Sectors: each element is read once, eight per sector, and one sum is written per column; with lanes
        along a column every lane reads a sector of its own, eight times as many. Bank conflicts: a shared
        array written by columns causes 31 per warp of a block; they are added to the sectors, so that a
        kernel without a shared array must read as few sectors. FP64: the program has one or two operations
        per element.
        """
        numbers, cols = inputs["rows"] * inputs["cols"], inputs["cols"]
        fewest, warps = (numbers + cols) / 8, self.SIDE * self.plan(inputs)[0]
        conflicts = "shared_memory.bank_conflicts + global_memory.sectors"
        return {
            "sectors": Bound("global_memory.sectors", 1.1 * fewest, 2 * fewest, "sectors"),
            "banks": Bound(conflicts, 1.1 * fewest, 1.1 * fewest + 15 * warps, "bank conflicts and sectors"),
            "single": Bound("fp64_flops", 1, numbers / 2, "operations in 64 bits"),
        }


@task("ps08/days_catch", points=8)
class DaysCatch(Task):
    """y = the sum of the boats' parts of x, added on the device while the next part is copied. The program to
    debug lacks the events between its streams, and its host reads y without synchronising.
    """

    entry, crossing = "days_catch", "device"
    arguments = ("device", "boats")
    returns = {"y": "numbers"}
    items = (
        Item("one", 1, title="One boat: y is complete when it is read"),
        Item("right", 3, title="Several boats: every operation waits for what it needs"),
        Item("seconds", 4, "structure", "A part is fetched while the part before is added"),
    )
    domain = {"boats": Whole(upto=33), "pace": Choice(1.0, 3.0, 0.25)}
    ARRAYS = 4  # arrays of one part that fit into device memory

    @staticmethod
    def job(rng, item, boats, pace=1.0):
        boats = int(boats)
        inputs = {"x": rng.random(boats * int(rng.integers(500, 900))), "boats": boats, "pace": pace}
        told = "" if pace == 1 else f", adding {pace:g} times as long as a copy"
        return Case(f"{item}, {so_many(boats, 'boat')}{told}", inputs, item)

    def make_cases(self, rng):
        job = functools.partial(self.job, rng)
        slow, fast = float(rng.integers(2, 6)), 1 / float(rng.integers(2, 6))
        right = (job("right", 2), job("right", 3, fast), job("right", rng.integers(6, 10), slow))
        return [job("one", 1), *right, job("seconds", 12)]

    def at(self, rng, place):
        return self.job(rng, "one" if place["boats"] == 1 else "right", place["boats"], place["pace"])

    def device(self, inputs):
        """A copy of n float64 takes 8 n / 25e9 s, adding them `pace` times as long, and a host call almost
        no time.
        """
        seconds, size = inputs["pace"] * 8 / BANDWIDTH, inputs["x"].size // inputs["boats"]
        timing = DeviceTiming(bandwidth=BANDWIDTH, copy_latency=0.0, launch_overhead=1e-9, sync_overhead=1e-9)
        host = {"x": inputs["x"], "y": np.zeros(size)}
        works = {"add": Work(np.add, seconds)}
        return VirtualDevice(timing, host, works, unread=("x",), memory=self.ARRAYS * 8 * size)

    def reference(self, inputs):
        return {"y": inputs["x"].reshape(inputs["boats"], -1).sum(axis=0)}

    def tolerance(self, inputs, expected):
        return {"y": sum_tolerance(inputs["boats"], expected["y"], np.float64)}

    def bounds(self, inputs):
        """n parts are copied in T each. Every addition but the last overlaps with the next copy, and the sum
        is copied out at the end: (n + 2) T. With one array each copy waits for the addition before: 2 n T.
        """
        boats, part = inputs["boats"], 8 * inputs["x"].size / inputs["boats"] / BANDWIDTH
        full, zero = 1.2 * (boats + 2) * part, 1.95 * boats * part
        return {"seconds": Bound("device.seconds", full, zero, "s on the virtual clock")}


@task("ps08/capture_graph", points=10)
class CaptureGraph(Task):
    """Three short kernels in sequence, `rounds` times: captured once, replayed as a graph."""

    entry, crossing = "capture_graph", "device"
    arguments = ("device", "rounds")
    returns = {"y": "numbers"}
    items = (
        Item("right", 2, title="The result after all rounds"),
        Item("host", 8, "structure", "The host gives one order a round, not three"),
    )
    domain = {"rounds": Whole(0, upto=33)}

    @staticmethod
    def drawn(rng, item, count):
        return Case(
            f"{item}, {so_many(count, 'round')}",
            {"x": rng.random(int(rng.integers(4, 30))), "rounds": int(count)},
            item,
        )

    def make_cases(self, rng):
        rounds = functools.partial(self.drawn, rng)
        return [
            rounds("right", 1),
            rounds("right", rng.integers(2, 9)),
            rounds("right", 0),
            rounds("host", 100),
        ]

    def at(self, rng, place):
        return self.drawn(rng, "right", place["rounds"])

    def device(self, inputs):
        """The kernels are short and a launch costs the host 5 us, so that the host limits the speed."""
        works = {
            "double": Work(lambda a: 2 * a % 1.7, 1e-12),
            "shift": Work(lambda a: a + 0.25, 1e-12),
            "square": Work(np.square, 1e-12),
        }
        timing = DeviceTiming(copy_latency=0.0, launch_overhead=5e-6, sync_overhead=1e-6)
        return VirtualDevice(
            timing, {"x": inputs["x"], "y": np.zeros(inputs["x"].size)}, works, unread=("x",)
        )

    def reference(self, inputs):
        y = inputs["x"].copy()
        for _ in range(inputs["rounds"]):
            y = np.square(2 * y % 1.7 + 0.25)
        return {"y": y}

    def tolerance(self, inputs, expected):
        return {"y": 1e-9}

    def bounds(self, inputs):
        """Full points: one launch of 5 us per round and 15 more. Without a graph a round takes three."""
        full = 5e-6 * (inputs["rounds"] + 15)
        return {"host": Bound("device.host_seconds", full, 2 * full, "s of the host")}
