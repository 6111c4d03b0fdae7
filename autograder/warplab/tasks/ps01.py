"""Problem set 1, pixels: kernels with one thread per pixel, the size of a grid, a timer that synchronises,
and a program to mend, which brightens a picture.
"""

import functools

import numpy as np

from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, KernelTask, Task, task
from warplab.tasks.domain import Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many

BLOCK = (16, 16)
LUMA = (0.299, 0.587, 0.114)


def covering_grid(width, height, block=BLOCK):
    """The smallest grid of `block` that has a thread for every pixel."""
    return -(-width // block[0]), -(-height // block[1])


def sides(rng, low=3, high=5):
    """(height, width): two different random multiples of 16."""
    height, width = 16 * rng.permutation(np.arange(low, high + 1))[:2]
    return int(height), int(width)


def warps(height, width):
    """The number of warps for an image whose sides are multiples of 16: a 16 x 16 block has 8, each of them
    16 pixels wide and 2 high.
    """
    return height * width // 32


def sectors_written(height, width):
    """Sectors of 32 bytes that 16 x 16 blocks write for a float32 image, each warp two rows of 16."""
    if width % 16 == 0:
        return height * width // 8
    row, col = np.mgrid[0:height, 0:width]
    requests = np.stack([row // 2, col // 16, (row * width + col) // 8])
    return np.unique(requests.reshape(3, -1), axis=1).shape[1]


class ImageKernel(KernelTask):
    """A kernel that writes one value for each pixel of `out`, launched with 16 x 16 blocks."""

    out_dtype = "float32"

    def size(self, inputs):
        """(height, width) of the output."""
        raise NotImplementedError

    def result(self, inputs):
        return {"out": (self.size(inputs), self.out_dtype)}

    def plan(self, inputs):
        height, width = self.size(inputs)
        return covering_grid(width, height), BLOCK


@task("ps01/grayscale", points=20)
class Grayscale(ImageKernel):
    """gray = 0.299 R + 0.587 G + 0.114 B for each pixel of a colour image."""

    entry = "grayscale"
    arguments = ("rgb", "out")
    yardstick = COPY
    items = (
        Item("aligned", 5, title="An image whose sides are multiples of the block"),
        Item("ragged", 5, title="Images of any other size, down to one pixel"),
        Item("coalesced", 5, "structure", "Each pixel is written once, neighbours by neighbouring threads"),
        Item("idle", 3, "structure", "A thread without a pixel writes none"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )
    domain = {"height": Whole(), "width": Whole(), "rgb": Values("float32", "plain", "zeros", "ones")}

    @staticmethod
    def image(rng, item, height, width):
        return Case(
            f"{item}, {width} x {height}", {"rgb": rng.random((height, width, 3), dtype=np.float32)}, item
        )

    def make_cases(self, rng):
        tall, wide = 2 * rng.integers(9, 40, 2) + 1
        ragged = [(1, 1), (1, int(wide)), (53, 37), (int(tall), int(wide))]
        square = 16 * int(rng.integers(4, 6))
        return [
            self.image(rng, "aligned", *sides(rng, 3, 6)),
            *(self.image(rng, "ragged", *size) for size in ragged),
            self.image(rng, "coalesced", square, square),
            self.image(rng, "idle", square, 16 * int(rng.integers(1, 3)) + 1),
        ]

    def fits(self, place):
        return place["height"] * place["width"] <= 3000

    def at(self, rng, place):
        case = self.image(rng, "ragged", place["height"], place["width"])
        if place["rgb"] != "plain":
            case.inputs["rgb"][:] = place["rgb"] == "ones"
        return case

    def make_timed(self, rng):
        return [self.image(rng, "time", 2048, 2048)]

    def size(self, inputs):
        return inputs["rgb"].shape[:2]

    def reference(self, inputs):
        return {"out": inputs["rgb"].astype(np.float64) @ np.array(LUMA)}

    def tolerance(self, inputs, expected):
        return {"out": sum_tolerance(3, np.abs(expected["out"]))}

    def bounds(self, inputs):
        """A sector is 32 bytes, eight float32 pixels, and each output pixel is written once.

        With row and col swapped a warp writes to 16 rows of 2 pixels instead of 2 rows of 16: four times as
        many sectors. A kernel that keeps the two loops writes every pixel once for each thread. If threads
        beyond the last column write pixels of the next row again, an image of 17 columns has 1.4 times the
        sectors, one of 33 has 1.27 times; the values are the same. A missing bounds check is an error in the
        rows "ragged" and "idle" and not in "coalesced", so it costs half of the points, not nearly all.

        Time: 12 bytes of colour are read and 4 of grey written for each pixel, and the kernel is memory
        bound: one pixel per thread costs a warp about 56 instructions, fewer than an SM of an H100 issues
        while it receives 32 pixels from HBM. Full points up to half of the roofline, twice the time of a
        copy, allow for 64-bit weights. Provisional: not yet recorded on a GPU.
        """
        height, width = self.size(inputs)
        fewest, written = sectors_written(height, width), "global_write.sectors"
        return {
            "coalesced": Bound(written, fewest, 2 * fewest, "sectors written"),
            "idle": Bound(written, fewest, 1.25 * fewest, "sectors written"),
            "time": Bound("time.ratio_low", 2.0, 5.0, "times the copy's time"),
        }


@task("ps01/launch_plan", points=15)
class LaunchPlan(Task):
    """The smallest grid that covers an image, and the number of its threads without a pixel."""

    entry = "launch_plan"
    arguments = ("width", "height", "block")
    returns = {"grid": "integers", "idle": "integers"}
    items = (
        Item("divides", 4, title="Images that the blocks tile exactly: the grid"),
        Item("ragged", 6, title="All other images: the grid"),
        Item("idle", 5, title="The number of idle threads"),
    )
    domain = {
        "width": Whole(upto=70_000),
        "height": Whole(upto=70_000),
        "threads_x": Whole(1, 1024, says=()),
        "threads_y": Whole(1, 1024, says=()),
    }
    corners = 12

    @staticmethod
    def planned(item, width, height, block, only):
        name = f"{item}, {width} x {height} in blocks of {block[0]} x {block[1]}"
        inputs = {"width": int(width), "height": int(height), "block": [int(b) for b in block]}
        return Case(name, inputs, item, only)

    def make_cases(self, rng):
        plan = self.planned
        cases = [
            plan("divides", 64, 48, (16, 16), ("grid",)),
            plan("divides", 3840, 2160, (16, 8), ("grid",)),
            plan("ragged", 1920, 1080, (16, 16), ("grid",)),
            plan("ragged", 1, 1, (32, 8), ("grid",)),
            plan("ragged", 100_003, 1, (128, 2), ("grid",)),
            # 2^24 + 1 is no float32, and 1,025 over 1,024 is hardly above 1: + 0.99 does not round it up.
            plan("ragged", 16_777_217, 1025, (1, 1024), ("grid",)),
            plan("ragged", 3, 65_537, (32, 1), ("grid",)),
            plan("idle", 1920, 1080, (16, 16), ("idle",)),
            plan("idle", 1, 1, (32, 32), ("idle",)),
            plan("idle", 7680, 4320, (32, 8), ("idle",)),
            plan("idle", 16_777_217, 1025, (1, 1024), ("idle",)),
        ]
        for item, only in (("ragged", ("grid",)), ("idle", ("idle",))):
            block = (int(rng.choice([4, 8, 16, 32])), int(rng.choice([3, 5, 8, 16])))
            size = rng.integers(200, 9000, 2) * block + rng.integers(1, np.array(block))
            cases.append(plan(item, size[0], size[1], block, only))
        block = (int(rng.choice([4, 8, 16, 32])), int(rng.choice([3, 5, 8, 16])))
        size = rng.integers(20, 500, 2) * block
        return [*cases[:2], plan("divides", size[0], size[1], block, ("grid",)), *cases[2:]]

    def fits(self, place):
        return place["threads_x"] * place["threads_y"] <= 1024

    def at(self, rng, place):
        block = place["threads_x"], place["threads_y"]
        tiled = place["width"] % block[0] == place["height"] % block[1] == 0
        item, only = ("idle", "idle") if rng.random() < 0.5 else ("divides" if tiled else "ragged", "grid")
        return self.planned(item, place["width"], place["height"], block, (only,))

    def reference(self, inputs):
        width, height, block = inputs["width"], inputs["height"], inputs["block"]
        grid = covering_grid(width, height, block)
        idle = grid[0] * block[0] * grid[1] * block[1] - width * height
        return {"grid": np.array(grid), "idle": np.array(idle)}


@task("ps01/box_blur", points=21)
class BoxBlur(ImageKernel):
    """Each pixel becomes the mean of the (2 radius + 1)^2 window around it, of the pixels that exist."""

    entry = "box_blur"
    arguments = ("image", "radius", "out")
    items = (
        Item("interior", 4, title="Pixels whose whole window lies inside the image"),
        Item("borders", 9, title="Pixels at the border"),
        Item("tiny", 4, title="Images smaller than the window"),
        Item("store_once", 4, "structure", "Each result is written to global memory once"),
    )
    domain = {
        "height": Whole(upto=300),
        "width": Whole(upto=300),
        "radius": Whole(0, upto=300),
        "image": Values("float32", "plain", "zeros", "equal"),
    }

    @staticmethod
    def blurred(rng, item, height, width, radius, whole=True):
        inputs = {
            "image": rng.random((height, width), dtype=np.float32) * 255
            - np.float32(255 if item == "tiny" else 128),
            "radius": int(radius),
            "whole": int(whole),
        }
        return Case(f"{item}, {width} x {height}, radius {radius}", inputs, item)

    def make_cases(self, rng):
        blur = functools.partial(self.blurred, rng)
        odd = [int(n) for n in 2 * rng.integers(9, 30, 3) + 1]
        return [
            blur("interior", *sides(rng), 1, False),
            # multiples of the block size: a missing bounds check fails only "borders" and "tiny"
            blur("interior", 48, 32, 2, False),
            blur("interior", 32, 48, rng.integers(7, 13), False),
            blur("borders", *sides(rng), 1),
            blur("borders", 37, odd[0], 3),
            blur("borders", odd[1], odd[2], 2),
            blur("borders", 19, 23, 0),
            blur("tiny", 1, 1, 2),
            blur("tiny", 1, 7, 3),
            blur("tiny", 5, 3, rng.integers(30, 100)),
            blur("store_once", *sides(rng), 1),
        ]

    def fits(self, place):
        pixels, window = place["height"] * place["width"], (2 * place["radius"] + 1) ** 2
        return pixels <= 2000 and pixels * window <= 3_000_000

    def at(self, rng, place):
        height, width, radius = place["height"], place["width"], place["radius"]
        item = "tiny" if 2 * radius + 1 > max(height, width) else "borders"
        case = self.blurred(rng, item, height, width, radius)
        if place["image"] != "plain":
            case.inputs["image"][:] = 0 if place["image"] == "zeros" else rng.uniform(-9, 9)
        return case

    def size(self, inputs):
        return inputs["image"].shape

    def reference(self, inputs):
        """The sums of the windows from a summed-area table, without a loop over the window."""
        total = self._window_sum(inputs["image"], inputs["radius"])
        count = self._window_sum(np.ones(self.size(inputs)), inputs["radius"])
        return {"out": total / count}

    @staticmethod
    def _window_sum(image, radius):
        height, width = image.shape
        table = np.zeros((height + 1, width + 1))
        table[1:, 1:] = image.astype(np.float64).cumsum(0).cumsum(1)
        top, bottom = (
            np.maximum(np.arange(height) - radius, 0),
            np.minimum(np.arange(height) + radius + 1, height),
        )
        left, right = (
            np.maximum(np.arange(width) - radius, 0),
            np.minimum(np.arange(width) + radius + 1, width),
        )
        return (
            table[np.ix_(bottom, right)]
            - table[np.ix_(top, right)]
            - table[np.ix_(bottom, left)]
            + table[np.ix_(top, left)]
        )

    def tolerance(self, inputs, expected):
        """A sum of n pixels and a division round n times; errors scale with the mean of |pixels|."""
        radius = inputs["radius"]
        size = self.reference(inputs | {"image": np.abs(inputs["image"])})["out"]
        tolerance = sum_tolerance(min((2 * radius + 1) ** 2, size.size) + 1, size)
        if not inputs["whole"]:
            border = np.ones(self.size(inputs), dtype=bool)
            border[radius:-radius, radius:-radius] = False
            tolerance[border] = np.inf
        return {"out": tolerance}

    def bounds(self, inputs):
        """One store request for each warp.

        A sum kept in out[row, col] stores (2 radius + 1)^2 times as often.
        """
        fewest = warps(*self.size(inputs))
        return {"store_once": Bound("global_write.requests", fewest, 2 * fewest, "store requests")}


@task("ps01/mandelbrot", points=16)
class Mandelbrot(ImageKernel):
    """The number of iterations z = z^2 + c for each pixel's c until |z| > 2."""

    entry = "mandelbrot"
    arguments = ("x_min", "y_min", "step", "max_iterations", "out")
    out_dtype = "int32"
    # PTX instructions per warp that are allowed for one iteration and for start and end: see bounds().
    ITERATION, FIXED = 40, 150
    items = (
        Item("picture", 4, title="The whole set"),
        Item("ragged", 6, title="Other places, other sizes"),
        Item("leave_early", 6, "structure", "A warp stops when its last pixel has escaped"),
    )
    domain = {
        "height": Whole(),
        "width": Whole(),
        "max_iterations": Whole(upto=257),
        "c": Choice("drawn", "quarters"),
    }

    @staticmethod
    def view(item, height, width, x_min, y_min, span, limit):
        inputs = {
            "x_min": float(x_min),
            "y_min": float(y_min),
            "step": float(span) / width,
            "max_iterations": int(limit),
            "height": int(height),
            "width": int(width),
        }
        return Case(f"{item}, {width} x {height}, at most {so_many(limit, 'step')}", inputs, item)

    def make_cases(self, rng):
        view = self.view
        x, y = rng.uniform(-0.8, -0.7), rng.uniform(0.05, 0.15)
        deep = -0.743643887 - rng.uniform(3e-6, 6e-6), 0.131825904 - rng.uniform(1e-6, 3e-6)
        return [
            view(
                "ragged", 1, 1, 0.3, 0.5, 1.0, 50
            ),  # first: an endless loop is found soonest in a single warp
            view("picture", *sides(rng), -2.0 + x / 9, -1.2, 3.2, int(rng.integers(50, 80))),
            view("ragged", 37, 41, x, y, 0.05, int(rng.integers(80, 120))),
            # Neighbours 2^-22 apart at the border of the set, where float32 cannot tell them apart.
            view("ragged", 18, 41, *deep, 41 * 2.0**-22, int(rng.integers(500, 600))),
            view("ragged", int(rng.integers(17, 32)), 53, x - 0.6, y, 0.8, 70),
            view("ragged", 5, 61, -1.5, -0.01, 0.2, 1),
            view("leave_early", 32, 64, 0.5, 0.2 + y, 1.0, 400),
        ]

    def fits(self, place):
        return place["height"] * place["width"] <= 2500

    def at(self, rng, place):
        """Multiples of 1/4: the first iterations are exact, and so is the test whether |z| > 2 or |z| = 2."""
        height, width, most = place["height"], place["width"], place["max_iterations"]
        if place["c"] == "drawn":
            return self.view("ragged", height, width, -0.75, 0.1 + rng.uniform(-0.05, 0.05), 0.3, most)
        case = self.view("ragged", height, width, -2, -(height // 2) / 4, width / 4, min(most, 3))
        case.inputs["exact"] = 1
        return case

    def size(self, inputs):
        return inputs["height"], inputs["width"]

    def reference(self, inputs):
        return {"out": self.escape_steps(inputs)}

    def escape_steps(self, inputs, nudge: complex = 0.0, limit=4.0):
        """The iteration counts in float64, for c + nudge; a pixel is finished when |z|^2 > limit."""
        rows, cols = np.mgrid[: inputs["height"], : inputs["width"]]
        c = (inputs["x_min"] + cols * inputs["step"]) + 1j * (inputs["y_min"] + rows * inputs["step"]) + nudge
        z, steps, alive = np.zeros_like(c), np.zeros(c.shape, np.int32), np.ones(c.shape, bool)
        for _ in range(inputs["max_iterations"]):
            alive &= z.real**2 + z.imag**2 <= limit
            z[alive] = z[alive] ** 2 + c[alive]
            steps += alive
        return steps

    def tolerance(self, inputs, expected):
        """Counts are compared exactly, except where rounding decides: a pixel whose count changes when c or
        the escape radius changes by 1e-9, some million times the rounding of float64, is not compared. In
        views of the whole set it is 1e-5; only the row on other places requires float64.
        """
        if "exact" in inputs:
            return {"out": 0.0}
        shaky = np.zeros(self.size(inputs), bool)
        off = 1e-5 if inputs["step"] > 0.02 else 1e-9
        for nudge, limit in (
            (off, 4.0),
            (-off, 4.0),
            (off * 1j, 4.0),
            (-off * 1j, 4.0),
            (0.0, 4.0 + off),
            (0.0, 4.0 - off),
        ):
            shaky |= self.escape_steps(inputs, nudge, limit) != expected["out"]
        return {"out": np.where(shaky, np.inf, 0.0)}

    def bounds(self, inputs):
        """A warp has 16 x 2 pixels and runs until its slowest pixel is finished: the smallest number of
        iterations is the sum of max(steps) over all warps, with about 10 PTX instructions each. 40 are
        allowed (abs() of a complex number costs 30), and 150 for start and end; a kernel that always runs
        max_iterations takes many times that.
        """
        steps = self.escape_steps(inputs)
        height, width = self.size(inputs)
        slowest = steps.reshape(height // 2, 2, width // 16, 16).max(axis=(1, 3))
        full = self.ITERATION * int(slowest.sum()) + self.FIXED * slowest.size
        return {"leave_early": Bound("warp_instructions", full, 2 * full, "warp instructions")}


@task("ps01/time_it", points=15)
class TimeIt(Task):
    """The median seconds of one launch on a device that runs asynchronously."""

    entry = "time_it"
    crossing = "device"
    arguments = ("device", "work", "repeats")
    returns = {"seconds": "numbers"}
    items = (
        Item("waits", 5, title="Times the work, not the launch"),
        Item("queue", 3, title="Work that was queued before is not counted"),
        Item("warm_up", 3, title="The first, slow launches are not counted"),
        Item("median", 4, title="A few disturbed samples do not move the result"),
    )
    domain = {"repeats": Whole(upto=65), "mood": Choice("quiet", "cold", "busy", "disturbed")}
    WARM_UPS = 20

    @staticmethod
    def timing(rng, item, repeats, **behaviour):
        duration = float(rng.uniform(0.2e-3, 2e-3))
        inputs = {"work": "work", "repeats": int(repeats), "timing": {"duration": duration, **behaviour}}
        return Case(f"{item}, {so_many(repeats, 'sample')}", inputs, item)

    def make_cases(self, rng):
        timing = functools.partial(self.timing, rng)
        return [
            timing("waits", 9),
            timing("waits", 30),
            timing("queue", 1, pending=float(rng.uniform(0.02, 0.2))),
            timing("warm_up", 5, cold_launches=4, cold_factor=20.0),
            timing("median", 21, outlier_every=7, outlier_factor=40.0),
            # A third is disturbed: more than a mean of the middle half excludes.
            timing("median", 3 * int(rng.integers(4, 9)), outlier_every=3, outlier_factor=3.0),
            # Every second launch takes three times as long: the median of an even number is half-way.
            timing("median", 2 * int(rng.integers(2, 9)), outlier_every=2, outlier_factor=3.0),
        ]

    def fits(self, place):
        return place["mood"] != "disturbed" or place["repeats"] > 4

    def at(self, rng, place):
        moods = {
            "quiet": ("waits", {}),
            "cold": ("warm_up", {"cold_launches": 4, "cold_factor": 20.0}),
            "busy": ("queue", {"pending": float(rng.uniform(0.02, 0.2))}),
            "disturbed": ("median", {"outlier_every": 5, "outlier_factor": 40.0}),
        }
        item, behaviour = moods[place["mood"]]
        return self.timing(rng, item, place["repeats"], **behaviour)

    def device(self, inputs):
        """The judge's device for one case."""
        return VirtualDevice(DeviceTiming(**inputs["timing"]))

    def reference(self, inputs):
        timing = inputs["timing"]
        half = (1 + timing["outlier_factor"]) / 2 if timing.get("outlier_every") == 2 else 1.0
        return {"seconds": np.array(half * timing["duration"])}

    def tolerance(self, inputs, expected):
        """2 % for the device's spread of 1 %, and twice the 8.2 us that a launch, a synchronisation and two
        readings of the clock cost the host. The shortest kernel takes 200 us, and every mistake that a row
        tests for is off by more.
        """
        return {"seconds": 0.02 * expected["seconds"] + 2 * 8.2e-6}

    def wrong_result(self, case, outcome):
        """Too many samples fail every row; launches that are not timed fail only the row on warm-up."""
        repeats = case.inputs["repeats"]
        counters = outcome.counters if outcome and not outcome.error else {"device.launches": repeats}
        launches = counters.get("device.launches", 0)
        timed = counters.get("device.clock_reads", 0) + counters.get("device.events", 0) > 2 * repeats
        too_many = launches > repeats + self.WARM_UPS and (timed or case.item == "warm_up")
        if launches < repeats or too_many:
            asked = f"{so_many(repeats, 'sample')} and at most {self.WARM_UPS} launches before the first"
            return f"launched the work {launches:.0f} times, asked for {asked}"
        return super().wrong_result(case, outcome)


@task("ps01/brighten_cause", points=2)
class BrightenCause(Task):
    """The bugs of the given program: its grid is rounded down, and a byte holds a product modulo 256."""

    entry = "brighten_cause"
    arguments = ("height", "width", "value", "gain")
    returns = {"missed": "integers", "written": "integers"}
    items = (
        Item("missed", 1, title="The pixels that no thread reaches"),
        Item("written", 1, title="The byte that is written"),
    )
    domain = {
        "height": Whole(upto=5000),
        "width": Whole(upto=5000),
        "value": Whole(0, 255),
        "gain": Whole(0, upto=300),
    }

    @staticmethod
    def asked(item, height, width, value, gain):
        told = f"{width} x {height}" if item == "missed" else f"{value} times {gain}"
        inputs = {"height": int(height), "width": int(width), "value": int(value), "gain": int(gain)}
        return Case(f"{item}, {told}", inputs, item, (item,))

    def make_cases(self, rng):
        sizes = [(48, 64), (43, 70), (15, 100), (100, 15), tuple(rng.integers(17, 3000, 2))]
        products = [(63, 4), (64, 4), (192, 4), (255, 255), (int(rng.integers(90, 200)), 3)]
        return [
            *(self.asked("missed", height, width, 30, 4) for height, width in sizes),
            *(self.asked("written", 48, 64, value, gain) for value, gain in products),
        ]

    def at(self, rng, place):
        return self.asked(str(rng.choice(["missed", "written"])), *place.values())

    def reference(self, inputs):
        height, width = inputs["height"], inputs["width"]
        missed = height * width - (height - height % 16) * (width - width % 16)
        return {"missed": np.array(missed), "written": np.array(inputs["value"] * inputs["gain"] % 256)}


@task("ps01/brighten", points=6)
class Brighten(ImageKernel):
    """min(255, byte * integer) for each byte of a picture: a kernel and its launch to mend."""

    entry, plan_entry = "brighten", "plan_brighten"
    arguments = ("image", "gain", "out")
    out_dtype = "uint8"
    items = (
        Item("bright", 2, title="Bright pixels, in pictures that the blocks cover exactly"),
        Item("odd", 3, title="Pictures of any other size"),
        Item("neighbours", 1, "structure", "Each pixel once, neighbours by neighbouring threads"),
    )
    domain = {
        "height": Whole(upto=300),
        "width": Whole(upto=300),
        "gain": Whole(0, upto=300),
        "image": Choice("drawn", "dark", "white"),
    }

    @staticmethod
    def night(rng, item, height, width, gain, image="drawn"):
        least, most = {"drawn": (0, 256), "dark": (0, 40), "white": (255, 256)}[image]
        drawn = rng.integers(least, most, (int(height), int(width))).astype(np.uint8)
        name = f"{item}, {width} x {height}, {'' if image == 'drawn' else image + ' '}times {gain}"
        return Case(name, {"image": drawn, "gain": int(gain)}, item)

    def make_cases(self, rng):
        night = functools.partial(self.night, rng)
        tall, wide = 2 * rng.integers(9, 40, 2) + 1
        return [
            night("bright", *sides(rng), 4),
            night("bright", *sides(rng), rng.integers(5, 300)),
            night("odd", 43, 70, 4, "dark"),
            night("odd", 1, 1, 2),
            night("odd", tall, wide, rng.integers(2, 9)),
            night("neighbours", 64, 96, 3),
        ]

    def fits(self, place):
        return place["height"] * place["width"] <= 3000

    def at(self, rng, place):
        tiled = place["height"] % 16 == place["width"] % 16 == 0
        return self.night(rng, "bright" if tiled else "odd", *place.values())

    def plan_arguments(self, inputs):
        height, width = self.size(inputs)
        return {"height": height, "width": width}

    def size(self, inputs):
        return inputs["image"].shape

    def reference(self, inputs):
        return {"out": np.minimum(inputs["image"].astype(np.int64) * inputs["gain"], 255)}

    def bounds(self, inputs):
        """In blocks of 16 x 16 a warp reads and writes two rows of 16 bytes, one sector each; with rows and
        columns exchanged, 16 rows of 2 bytes.
        """
        fewest = 4 * warps(*self.size(inputs))
        return {"neighbours": Bound("global_memory.sectors", fewest, 2 * fewest, "sectors")}
