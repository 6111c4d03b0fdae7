"""One product climbed: the same product of matrices, version by version, in a log that is drawn as stairs.

    climb("tiles", matmul_tiled[grid, block], a, b, c, note="a number is fetched once for each tile")

A step is as high as the FLOP/s that arithmetic and L1 with shared memory permit: both grow with the work, so
that a small product's counts stand for a large one's on a device that is full. It is theory; only CUDA has a
time. The log lies beside the sets' folders, so that four sets and every restart of a kernel share it. What
stands in it is the student's own word, and no point depends on it.
"""

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from warplab.crossing.explain import explain
from warplab.hardware import specs
from warplab.hardware.device import device
from warplab.plots import figure as figures
from warplab.plots import theme
from warplab.plots.palette import PALETTE
from warplab.plots.responsive import PHONE
from warplab.rendering import render
from warplab.simt.profile import profile
from warplab.tasks.feedback import show
from warplab.timing.bench import bench
from warplab.timing.bounds import L1, LaunchWork, bounds

FILE = "climb.json"
FULL = 10**9  # blocks: no SM is idle
SAMPLE = 8  # blocks that are counted of a product that is large enough to be timed
Count = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=1, lt=1e30)]  # FLOP/s
COLOURS = {True: PALETTE["blue"], False: PALETTE["orange"]}  # whether L1 binds
NEAR = 0.05  # how far a number of c may be off: sums of some thousand terms, 16-bit factors


@dataclass(frozen=True)
class ClimbStep:
    """One version. requests, sectors: of loads from global memory. passes: of 128 bytes through L1 and shared
    memory. at_most: FLOP/s on `device`, where `binds` is busy all the time. peak: FLOP/s of the unit that
    multiplies. seconds: on CUDA, else None.
    """

    name: str
    note: str
    size: str
    device: str
    flops: Count
    requests: Count
    sectors: Count
    passes: float
    binds: str
    at_most: Rate
    peak: Rate
    seconds: Annotated[float, Meta(gt=0)] | None = None

    @property
    def reached(self):
        """FLOP/s by the clock, None without one."""
        return self.flops / self.seconds if self.seconds else None

    def cells(self):
        """Texts of the table, in the order of HEADS without the first."""
        measured = ""
        if self.reached:
            measured = f"{self.reached / 1e12:.3g} TFLOP/s, {self.reached / self.at_most:.0%} of the bound"
        at_most = f"{self.at_most / 1e12:.3g} TFLOP/s, {self.at_most / self.peak:.0%} of the peak"
        counts = [f"{count:,.0f}" for count in (self.requests, self.sectors, self.passes)]
        return [at_most, self.binds, *counts, measured]


HEADS = ("step", "at most", "binds", "requests", "sectors", "passes", "measured")
BELOW = (
    "Requests and sectors: of loads from global memory. Passes: of 128 bytes through L1 and shared memory. "
    "At most: what the counts and the data sheet permit on a device that is full, theory and no time; a time "
    "needs CUDA."
)


class Climb:
    """The log as a picture and a table in a notebook, as a Markdown table elsewhere."""

    def __init__(self, steps, told=""):
        self.steps, self.told, self.below = steps, told, BELOW
        self.heads = (
            HEADS if any(step.seconds for step in steps) else HEADS[:-1]
        )  # a column of times if there is one

    def __repr__(self):
        return "\n".join(([self.told] if self.told else []) + ([self.markdown()] if self.steps else []))

    def markdown(self):
        """The table as it is handed in."""
        heads = (*self.heads, "what changed")
        lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
        for number, step in enumerate(self.steps, 1):
            lines.append(" | ".join([f"{number} {step.name}", *self.cells(step), step.note]))
        return "\n".join(f"| {line} |" for line in lines)

    def cells(self, step):
        """A step's texts under the heads but the first."""
        return step.cells()[: len(self.heads) - 1]

    def _repr_html_(self):
        picture = stairs(self.steps)._repr_html_() if self.steps else ""
        return picture + render("warplab.puzzles", "climb.html.j2", climb=self)


def climb(name=None, launch=None, *args, note=""):
    """warplab.check.climb."""
    path = place()
    try:
        steps = read(path)
    except (OSError, RecursionError, msgspec.MsgspecError, specs.SpecError) as problem:
        show(Climb([], f"The log {path} cannot be read ({problem}): move it away, and climb again."))
        return
    if name is None:
        show(Climb(steps, "" if steps else "The log is empty: run a cell that climbs, here or in ps04."))
        print(Climb(steps).markdown() if steps else "")
        return
    if not isinstance(name, str) or not name.strip():
        told = (
            "The version's name comes first: climb('tiles', matmul_tiled[grid, block], a, b, c, note='...')."
        )
        show(Climb(steps, told))
        return
    name = one_line(name)
    if not isinstance(note, str) or not note.strip():
        told = "Say first, in one sentence in the place of the `...`, what this version does less often than"
        show(Climb(steps, f"{told} the one before. {name!r} is counted then."))
        return
    try:
        step = counted(name, one_line(note), launch, args)
        steps = read(path)  # again: another notebook may have added to it
    except Exception as error:  # noqa: BLE001 - it runs a student's code: told as that
        show(Climb(steps, f"{name!r} is not counted: {explain(error)}"))
        return
    steps = [step if one.name == name else one for one in steps]
    steps += [step] if step not in steps else []
    told = ""
    try:
        fresh = path.with_name(f"{FILE}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(steps), indent=1))
        fresh.replace(path)
    except OSError as problem:
        told = f"The log {path} cannot be written ({problem}): this step is not kept."
    show(Climb(steps, told))


def place():
    """The log's path: beside the folders ps04, ps05 ... where the notebook lies in one of them."""
    here = Path.cwd()
    return (here.parent if re.fullmatch(r"ps\d\d", here.name) else here) / FILE


def read(path):
    """The steps of a log. OSError, RecursionError, MsgspecError or SpecError where the file is none."""
    steps = msgspec.json.decode(path.read_bytes(), type=list[ClimbStep]) if path.exists() else []
    for step in steps:
        specs.get(step.device)
    return steps


def one_line(text):
    """A text as a cell of a Markdown table may hold it."""
    return " ".join(text.replace("|", "/").split())


def counted(name, note, launch, args):
    """The step of one launch: args[0] @ args[1] into the last array. ValueError for another result."""
    arrays = [one for one in args if isinstance(one, np.ndarray)]
    if len(arrays) < 3 or any(one.ndim != 2 or not one.size for one in (*arrays[:2], arrays[-1])):
        raise ValueError("behind kernel[grid, block] come a, b and c, NumPy arrays of two dimensions")
    a, b, c = arrays[0], arrays[1], arrays[-1]
    if c.dtype.kind != "f" or c.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"c is {c.dtype}{list(c.shape)}: it has room for a @ b, in numbers with a point")
    c.fill(np.nan)  # results of an earlier version must not count
    cuda_here = device().kind == "cuda"
    p, seconds = profile(launch, *args, sample_blocks=SAMPLE if cuda_here else None), None
    if cuda_here:
        from numba import cuda

        there = [cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in args]
        seconds = bench(launch, *there).median
        where = next(k for k, one in enumerate(args) if one is c)
        there[where].copy_to_host(c)
    off = np.abs(c - a.astype(np.float32) @ b.astype(np.float32)).max()
    if not off < NEAR:
        raise ValueError(f"c is not a @ b: off by {off:.3g} at most")
    card = (specs.reported(device().name) if cuda_here else None) or "h100-sxm"
    work = LaunchWork(dict(p.unit_flops), p.l1_wavefronts, 0, 0, 0, FULL)
    bound, flops, load = bounds(work, card), sum(p.unit_flops.values()), p.global_load
    if not flops:
        raise ValueError("the kernel multiplies nothing: no floating-point operation was counted")
    size = f"{a.shape[0]} x {b.shape[1]} x {a.shape[1]}"
    requests, sectors, passes = int(load.requests), int(load.sectors), float(p.l1_wavefronts)
    at_most = flops / bound.at_least
    peak = max((one for one in bound.bounds if one.unit == "FLOP"), key=lambda one: one.amount).rate
    counts = int(flops), requests, sectors, passes
    return ClimbStep(name, note, size, card, *counts, bound.binds.level, at_most, peak, seconds)


def stairs(steps):
    """A bar for each step, as high as its bound permits; dashes at the unit's peak, a dot by the clock."""
    drawing, ax = theme.new(PHONE, 3.4)
    heights = [step.at_most / 1e12 for step in steps]
    dots = {x: step.reached / 1e12 for x, step in enumerate(steps) if step.reached}
    low = 10 ** math.floor(math.log10(min(heights + list(dots.values())) / 1.5))
    for x, (step, high) in enumerate(zip(steps, heights, strict=True)):
        colour = COLOURS[step.binds == L1]
        ax.stairs([high], [x, x + 1], baseline=low, fill=True, color=colour, alpha=0.25)
        ax.plot([x, x + 1], [high, high], color=colour, linewidth=3, solid_capstyle="butt")
        peak = [step.peak / 1e12] * 2
        ax.plot([x + 0.06, x + 0.94], peak, color=PALETTE["grey"], linewidth=1.5, linestyle=(0, (3, 2)))
        ax.text(x + 0.5, 0.9 * high, f"{high:.3g}", ha="center", va="top")
    ax.plot([x + 0.5 for x in dots], list(dots.values()), "o", color=PALETTE["green"])
    top = 10 ** math.ceil(math.log10(max(step.peak / 1e12 for step in steps) * 1.05))
    ticks = [10**k for k in range(round(math.log10(low)), round(math.log10(top)) + 1)]
    ax.set(yscale="log", ylim=(low, top), xlim=(0, max(4, len(steps))))
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.set_xticks([x + 0.5 for x in range(len(steps))], [str(x) for x in range(1, len(steps) + 1)])
    ax.set(ylabel="at most (TFLOP/s)", xlabel="step")
    kinds = {"peak of the unit that multiplies": {"color": PALETTE["grey"], "linestyle": (0, (3, 2))}}
    for step in steps:
        kinds[f"{step.binds} binds"] = {"color": COLOURS[step.binds == L1], "linewidth": 3}
    if dots:
        kinds["measured"] = {"color": PALETTE["green"], "marker": "o", "linestyle": "none"}
    theme.legend(drawing, [ax.plot([], [], **look)[0] for look in kinds.values()], list(kinds))
    pairs = zip(steps, heights, strict=True)
    told = "; ".join(f"{step.name} {high:.3g} TFLOP/s, {step.binds} binds" for step, high in pairs)
    last = steps[-1]
    caption = f"Products of {last.size} on an {specs.get(last.device).short}: bounds, not times."
    alt = f"Stairs of {len(steps)} step{'s' * (len(steps) > 1)}: {told}."
    return figures.show(drawing, alt, caption, evidence=["counted", "theory"])
